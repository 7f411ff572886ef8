// Package validator is the process of a validator or full node: founding a network, joining one, running, and the keys
// of its operator. The rules of the chain are in chain/ and protocol/.
package validator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmtjson "github.com/cometbft/cometbft/libs/json"
	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/clock"
	"github.com/starling-network/starling/chain/garbage"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/payout"
)

// Options say how a validator runs.
type Options struct {
	Home    string // folder made by InitNetwork
	Reserve int64  // bytes of its disk that must be free for it to run; 0: DefaultReserve
	Metrics string // host:port where Prometheus finds metrics, CometBFT's among them; "": nowhere
	Every   uint64 // blocks between two snapshots for validators that join; 0: none
	// uzen that a transaction pays for a unit of gas, with decimals; "": what governance has set; "0": nothing
	GasPrice string
	Sources  []payout.Source // nodes of other chains, whose deposits its votes report
	Act      Deviation       // how it breaks the rules, to see what comes of it; nil: it keeps them
	Version  string          // of the binary
	Say      func(string)    // told where the validator is reached, and every height that is a multiple of a hundred
}

// Deviation makes an application that breaks the rules of an honest one (chain/deviant).
type Deviation = func(abci.Application) abci.Application

// DefaultReserve is how much of its disk must be free for a validator to run: a database that cannot be written to is
// damaged more easily than a validator that is away is missed.
const DefaultReserve = 256 << 20

// ErrRoomAgain ends a validator that had stopped because its disk was full, when there is room. It is to be started
// again, as a new process: what failed in this one for want of room may have left anything behind.
var ErrRoomAgain = errors.New("validator: there is room on the disk again")

// Run runs a validator until the context ends, or its clock is behind the blocks. While its disk is nearly full it is
// stopped.
func Run(ctx context.Context, o Options) error {
	if o.Reserve == 0 {
		o.Reserve = DefaultReserve
	}
	f, err := keystore.ReadValidator(o.Home)
	if err != nil {
		return err
	}
	defer garbage.CollectLess()()
	w := instrument.New(o.Version, "validator")
	w.Metrics.Gauge("starling_disk_free_bytes", "Bytes of the disk that the process may fill.", func() float64 {
		free, _ := disk.Free(o.Home)
		return float64(free)
	})
	w.Metrics.Gauge("starling_disk_reserve_bytes", "Bytes of the disk that must be free for the validator to run.",
		func() float64 { return float64(o.Reserve) })
	stop, err := w.Metrics.Serve(ctx, o.Metrics)
	if err != nil {
		return err
	}
	defer func() { _ = stop() }()
	full, err := o.run(ctx, f, w)
	if full {
		return o.AwaitRoom(ctx, f.RPC)
	}
	return err
}

// run runs the validator until the context ends or the disk is full, also if that is why it ended with an error.
func (o Options) run(ctx context.Context, f keystore.ValidatorFile, w *instrument.Instruments) (full bool, err error) {
	if o.full(o.Reserve) {
		return true, nil
	}
	_ = os.Remove(filepath.Join(o.Home, keystore.FileStopped)) // of a process that was killed while it waited
	_, log, err := folder.OpenLog(filepath.Join(o.Home, keystore.FileValidatorLog))
	if err != nil {
		return o.full(o.Reserve), err
	}
	defer log.Close()
	var deposits chain.Deposits
	if len(o.Sources) > 0 {
		watcher := payout.NewWatcher(o.Sources)
		watching, end := context.WithCancel(ctx)
		var ended sync.WaitGroup
		ended.Go(func() { watcher.Run(watching, lookEvery, slog.New(slog.NewTextHandler(log, nil))) })
		defer ended.Wait() // before the log is closed
		defer end()
		deposits = watcher
	}
	// It outlives the context, so that Stop ends it in order.
	v, err := chain.Start(context.WithoutCancel(ctx), chain.Config{
		Home: o.Home, ChainID: f.ChainID, Listen: f.Listen, Peers: f.Peers, RPC: f.RPC, GRPC: f.GRPC, REST: f.REST,
		BlockTime: time.Duration(f.BlockMS) * time.Millisecond, Log: log, Say: o.Say, Metrics: o.Metrics != "",
		SnapshotEvery: o.Every, Sync: (*chain.Sync)(f.Sync), Full: f.Full, GasPrice: cmp.Or(o.GasPrice, chain.Governed),
		Act: o.Act, Deposits: deposits,
	})
	if err != nil {
		return o.full(o.Reserve), err
	}
	defer func() {
		if full {
			go v.Stop() // which may wait for ever for what could not be written
		} else {
			v.Stop()
		}
	}()
	o.Say(fmt.Sprintf("%s of %s: http://%s for everybody (gRPC %s, REST http://%s), %s for other validators", f.Kind(),
		f.ChainID, f.RPC, f.GRPC, f.REST, f.Listen))
	_, _ = daemon.SdNotify(false, daemon.SdNotifyReady)         // a supervisor may listen
	c := client.New(v.Client(), wallet.KeyFromSeed([32]byte{})) // it only listens
	defer c.Close()
	return o.follow(ctx, c, w)
}

// lookEvery is the time between two looks at other chains.
const lookEvery = 5 * time.Second

// diskEvery is the time between two looks at the free space of the disk.
const diskEvery = time.Second

// follow tells of blocks until the context ends or the disk is full.
func (o Options) follow(ctx context.Context, c *client.Client, w *instrument.Instruments) (full bool, err error) {
	blocks, err := c.Blocks(ctx)
	if err != nil {
		return o.full(o.Reserve), err
	}
	look := time.NewTicker(diskEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case <-look.C:
			if o.full(o.Reserve) {
				return true, nil
			}
		case b, ok := <-blocks:
			if !ok {
				return o.full(o.Reserve), errors.Join(ctx.Err(), member.ErrClosed)
			}
			w.Block(b.Height, b.Time)
			if err := clock.OnTime(time.Now(), b.Time); err != nil {
				return false, err
			}
			if b.Height == 1 || b.Height%100 == 0 {
				o.Say(fmt.Sprintf("height %d", b.Height))
			}
		}
	}
}

// full reports whether fewer bytes than these are free. A disk of which nothing is known is not full.
func (o Options) full(bytes int64) bool {
	free, ok := disk.Free(o.Home)
	return ok && free < bytes
}

// patience is how many times the port of a stopped validator is tried, while another process has it, before the
// validator reports that it is stopped.
const patience = 10

// AwaitRoom reports that the disk is full, in the log and at an address, and waits until one and a half times the
// space that the validator needs is free, so that it does not alternate between stop and start.
func (o Options) AwaitRoom(ctx context.Context, address string) error {
	free, _ := disk.Free(o.Home)
	why := &endpoint.Halted{
		Code: "DISK_FULL", Since: time.Now(), Fix: "make room on the disk; it continues by itself",
		Why: fmt.Sprintf("%d MiB are free in %s, and %d MiB must be for the validator to run", free>>20, o.Home,
			o.Reserve>>20),
	}
	path := filepath.Join(o.Home, keystore.FileStopped)
	unwritten := folder.WriteJSON(path, why)
	say := sync.OnceFunc(func() {
		o.Say(fmt.Sprintf("%s: the validator is stopped: %s; %s", why.Code, why.Why, why.Fix))
		if unwritten != nil {
			o.Say(fmt.Sprintf("validator status will know why only from %s: %v", address, unwritten))
		}
	})
	server := &http.Server{Handler: why, ReadHeaderTimeout: diskEvery}
	defer server.Close()
	var asked net.Listener // nil while the validator still has the port
	look := time.NewTicker(diskEvery)
	defer look.Stop()
	for looks := 0; o.full(o.Reserve + o.Reserve/2); looks++ {
		if asked == nil {
			if l, err := net.Listen("tcp", address); err == nil {
				asked = l
				go func() { _ = server.Serve(l) }() // ends when it is closed
			}
		}
		if asked != nil || looks == patience {
			say() // the address answers before the message is printed
		}
		select {
		case <-ctx.Done():
			_ = os.Remove(path)
			return nil
		case <-look.C:
		}
	}
	say()
	_ = os.Remove(path) // it may not be there
	o.Say("there is room on the disk again: starting the validator")
	return ErrRoomAgain
}

// ExportChain is the state of a stopped validator as the genesis, in JSON, of a chain that continues at the next
// height.
func ExportChain(dir string) ([]byte, error) {
	if _, err := keystore.ReadValidator(dir); err != nil {
		return nil, err
	}
	doc, err := chain.Export(dir)
	if err != nil {
		return nil, err
	}
	return cmtjson.MarshalIndent(doc, "", "  ")
}

// ReplayChain executes the blocks of a stopped validator once more, and compares (see chain.Replay).
func ReplayChain(ctx context.Context, dir string, until int64, each func(height, last int64)) (chain.Replayed, error) {
	if _, err := keystore.ReadValidator(dir); err != nil {
		return chain.Replayed{}, err
	}
	return chain.Replay(ctx, dir, until, each)
}

// ImportChain puts the genesis of a file in the folder of a stopped validator, and returns where the chain is that was
// there; "" if there was none.
func ImportChain(dir, file string) (aside string, err error) {
	if _, err := keystore.ReadValidator(dir); err != nil {
		return "", err
	}
	doc, err := cmttypes.GenesisDocFromFile(file)
	if err != nil {
		return "", err
	}
	return chain.Import(dir, doc)
}
