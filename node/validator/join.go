package validator

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	cmtjson "github.com/cometbft/cometbft/libs/json"
	"github.com/cometbft/cometbft/p2p"
	rpcclient "github.com/cometbft/cometbft/rpc/client"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/operator"
)

// JoinOptions say which chain a new validator joins, and where it is reached.
type JoinOptions struct {
	Home      string        // its folder, made by Join
	Network   string        // HTTP interfaces of validators of the chain, separated by commas
	Host      string        // at which everybody reaches the new one
	Port      int           // for other validators; the three after it are for CometBFT, gRPC and REST
	BlockTime time.Duration // of the chain
	Every     uint64        // blocks between two snapshots that the others take; 0: execute all blocks from the first on
	Private   bool          // it answers clients of its own machine only
	Full      bool          // it is no validator: it has no keys of one, follows the chain and answers clients
}

// Joined is what Join made.
type Joined struct {
	ChainID  string      `json:"chain_id"`
	Home     string      `json:"home"`
	Operator string      `json:"operator"`         // account whose coins it stakes; "": of a full node
	Phrase   string      `json:"phrase,omitempty"` // backup of its keys, if they are new: a secret
	RPC      string      `json:"rpc"`
	Peers    []string    `json:"peers"`
	Sync     *chain.Sync `json:"sync,omitempty"` // none: it executes all blocks
}

// Join makes the folder of a validator that joins an existing chain. Restored keys in the folder are kept. The
// validator starts with RunValidator, follows the chain, and votes once Bond has given it a stake; a full node never
// votes. The given validators are trusted for the genesis of the chain, and for the block from which a snapshot is
// checked.
func Join(ctx context.Context, o JoinOptions) (*Joined, error) {
	if o.Port < 1 || o.Port+3 > 65535 {
		return nil, fmt.Errorf("validator: there are no four ports from %d on", o.Port)
	}
	if err := checkBlockTime(o.BlockTime); err != nil {
		return nil, err
	}
	path := filepath.Join(o.Home, keystore.FileValidator)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("%w: %s", keystore.ErrIsValidator, o.Home), err)
	}
	rpc, err := endpoint.Dial(o.Network)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rpc.Stop() }()
	doc, err := fetchGenesis(ctx, rpc)
	if err != nil {
		return nil, err
	}
	status, err := rpc.Status(ctx)
	if err != nil {
		return nil, err
	}
	servers := strings.Split(o.Network, ",")
	peers, err := fetchPeers(ctx, rpc, status.NodeInfo, servers[0])
	if err != nil {
		return nil, err
	}
	var from *chain.Sync
	if o.Every > 0 {
		if from, err = fetchTrust(ctx, rpc, servers, status.SyncInfo.LatestBlockHeight, o.Every); err != nil {
			return nil, err
		}
	}
	j := &Joined{ChainID: doc.ChainID, Home: o.Home, Peers: peers, Sync: from}
	if !o.Full {
		if err := j.makeKeys(); err != nil {
			return nil, err
		}
	} else if err := os.MkdirAll(filepath.Join(o.Home, "config"), 0o700); err != nil {
		return nil, err
	}
	f := validatorAt(doc.ChainID, o.Host, o.Port, o.BlockTime)
	f.Peers, f.Sync, f.Full = peers, (*keystore.Sync)(from), o.Full
	if o.Private {
		f.Private()
	}
	if err := errors.Join(doc.SaveAs(filepath.Join(o.Home, "config", keystore.FileGenesis)),
		folder.WriteJSON(path, f)); err != nil {
		return nil, err
	}
	j.RPC = "http://" + f.RPC
	return j, nil
}

// makeKeys makes the keys of the new validator, unless they were restored.
func (j *Joined) makeKeys() error {
	_, err := identity.ReadSecret(j.Home)
	made := errors.Is(err, identity.ErrNoSecret)
	if _, err := identity.MakeKeys(j.Home); err != nil {
		return err
	}
	keys, err := operator.ReadKeys(j.Home)
	if err != nil {
		return err
	}
	if j.Operator = keys.Operator; made {
		j.Phrase = keys.Phrase
	}
	return nil
}

// maxGenesis bounds the genesis that is fetched, in chunks of 16 MiB.
const maxGenesis = 64

// fetchGenesis asks a validator for the genesis of its chain.
func fetchGenesis(ctx context.Context, rpc rpcclient.Client) (*cmttypes.GenesisDoc, error) {
	var raw []byte
	for i := uint(0); ; i++ {
		part, err := rpc.GenesisChunked(ctx, i)
		if err != nil {
			return nil, fmt.Errorf("validator: the genesis: %w", err)
		}
		data, err := base64.StdEncoding.DecodeString(part.Data)
		if err != nil || part.TotalChunks > maxGenesis {
			return nil, fmt.Errorf("validator: a genesis of %d parts: %w", part.TotalChunks, err)
		}
		if raw = append(raw, data...); int(i)+1 >= part.TotalChunks {
			break
		}
	}
	doc := new(cmttypes.GenesisDoc)
	if err := cmtjson.Unmarshal(raw, doc); err != nil {
		return nil, fmt.Errorf("validator: the genesis: %w", err)
	}
	return doc, doc.ValidateAndComplete()
}

// fetchPeers are the validator that is asked, at an HTTP interface, and those that it is connected to, as others dial
// them.
func fetchPeers(ctx context.Context, rpc rpcclient.Client, own p2p.DefaultNodeInfo, at string) ([]string, error) {
	asked, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	all, err := rpc.NetInfo(ctx)
	if err != nil {
		return nil, err
	}
	var list []string
	add := func(peer p2p.DefaultNodeInfo, host string) {
		if listens, port, err := net.SplitHostPort(strings.TrimPrefix(peer.ListenAddr, "tcp://")); err == nil {
			if ip := net.ParseIP(listens); ip == nil || !ip.IsUnspecified() {
				host = listens
			}
			list = append(list, string(peer.DefaultNodeID)+"@"+net.JoinHostPort(host, port))
		}
	}
	add(own, asked.Hostname())
	for _, p := range all.Peers {
		add(p.NodeInfo, p.RemoteIP)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("validator: the validator at %s says nowhere how others dial it", at)
	}
	return list, nil
}

// fetchTrust is a block from which the headers of the latest snapshots follow, on a chain at a height; nil if it is too
// young to have any.
func fetchTrust(ctx context.Context, rpc rpcclient.Client, servers []string, latest int64,
	every uint64) (*chain.Sync, error) {
	if every > uint64(latest)/2 {
		return nil, nil
	}
	height := max(1, latest-2*int64(every))
	c, err := rpc.Commit(ctx, &height)
	if err != nil {
		return nil, fmt.Errorf("validator: block %d: %w", height, err)
	}
	return &chain.Sync{Servers: servers, Height: height, Hash: c.Hash().String()}, nil
}
