// Package account is an account that orders jobs on a network: its connection, which counts the transactions of the
// account, and its host, under whose one address the network knows it. Jobs of one process share both; each keeps its
// blobs in a store of its own. The package orders nothing: node/consumer does.
package account

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/fetch"
	"github.com/starling-network/starling/node/accelerator/shared"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/release"
	"github.com/starling-network/starling/protocol/registry"
)

// Account is safe for concurrent use.
type Account struct {
	Home  home.Home
	Chain *client.Client
	Host  *peer.Host // serves the stores that are attached

	KeyServer *release.Server // answers questions about keys of the jobs

	union   *blob.Union
	listing sync.Mutex // held during Enlist
}

// Open connects the account of a folder to a network. The host listens at multiaddrs; none: at any port of the
// loopback. Nothing is sent to the network yet.
func Open(h home.Home, network string, listen []string) (*Account, error) {
	c, err := client.Connect(network, h.Account())
	if err != nil {
		return nil, err
	}
	a := &Account{Home: h, Chain: c}
	if err := a.Serve(listen); err != nil {
		c.Close()
		return nil, err
	}
	return a, nil
}

// Alone opens the account of a folder as Open does, and keeps other servers out of the folder until leave.
func Alone(dir, network string, listen []string) (a *Account, leave func() error, err error) {
	h, err := home.Read(dir)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := folder.Lock(dir)
	if err != nil {
		return nil, nil, err
	}
	if a, err = Open(h, network, listen); err != nil {
		return nil, nil, errors.Join(err, unlock())
	}
	return a, func() error { return errors.Join(a.Close(), unlock()) }, nil
}

// Serve opens the host of the account, which serves the stores that are attached.
func (a *Account) Serve(listen []string) (err error) {
	a.union = &blob.Union{}
	if a.Host, err = peer.New(peer.Config{Key: a.Home.Peer(), Store: a.union, Listen: listen}); err == nil {
		a.KeyServer = release.NewServer(a.Host)
	}
	return err
}

// Close ends the connection and the host.
func (a *Account) Close() error {
	err := a.Host.Close()
	a.Chain.Close()
	return err
}

// Enlist says on the network where the host is reached, unless the network knows that.
func (a *Account) Enlist(ctx context.Context) error {
	a.listing.Lock()
	defer a.listing.Unlock()
	if err := a.Chain.Ready(ctx); err != nil {
		return err
	}
	p, err := a.Chain.Registry.Participant(ctx, a.Chain.Address())
	switch {
	case err == nil && p.PeerID == a.Host.ID().String() && slices.Equal(p.Addrs, a.Host.Addrs()):
		return nil
	case err != nil && !errors.Is(err, client.ErrNotFound):
		return err
	}
	return a.Chain.Registry.Enlist(ctx, registry.Participant{PeerID: a.Host.ID().String(), Addrs: a.Host.Addrs(),
		Device: shared.Processor()})
}

// Attach serves the blobs of a store until detach, and returns a fetcher into it, and the bytes of leaves
// that went out of it to others and came into it from others.
func (a *Account) Attach(store blob.Store) (into *fetch.Fetcher,
	traffic func() (sent, received uint64), detach func()) {
	served, filled := &counted{Store: store}, &counted{Store: store}
	return a.Host.Into(filled),
		func() (uint64, uint64) { return served.read.Load(), filled.written.Load() },
		a.union.Add(served)
}
