package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	cmtjson "github.com/cometbft/cometbft/libs/json"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/client"
)

// fileValidatorLog, in the folder of a validator, says what went wrong inside the chain.
const fileValidatorLog = "validator.log"

// ValidatorOptions say how a validator runs.
type ValidatorOptions struct {
	Home    string       // folder made by InitNetwork
	Metrics string       // host:port where Prometheus finds metrics, CometBFT's among them; "": nowhere
	Version string       // of the binary
	Say     func(string) // told where the validator is reached, and every height that is a multiple of a hundred
}

// RunValidator runs a validator until the context ends, or its clock is behind the blocks.
func RunValidator(ctx context.Context, o ValidatorOptions) error {
	dir, say := o.Home, o.Say
	f, err := readValidator(dir)
	if err != nil {
		return err
	}
	_, log, err := openLog(filepath.Join(dir, fileValidatorLog))
	if err != nil {
		return err
	}
	defer log.Close()
	w := newWatch(o.Version, "validator")
	stop, err := w.metrics.Serve(ctx, o.Metrics)
	if err != nil {
		return err
	}
	defer func() { _ = stop() }()
	// It outlives the context, so that Stop ends it in order.
	v, err := chain.Start(context.WithoutCancel(ctx), chain.Config{
		Home: dir, ChainID: f.ChainID, Listen: f.Listen, Peers: f.Peers, RPC: f.RPC, GRPC: f.GRPC, REST: f.REST,
		BlockTime: time.Duration(f.BlockMS) * time.Millisecond, Log: log, Say: say, Metrics: o.Metrics != "",
	})
	if err != nil {
		return err
	}
	defer v.Stop()
	say(fmt.Sprintf("validator of %s: http://%s for everybody (gRPC %s, REST http://%s), %s for other validators", f.ChainID, f.RPC, f.GRPC, f.REST, f.Listen))
	c := client.New(v.Client(), client.KeyFromSeed([32]byte{})) // it only listens
	defer c.Close()
	blocks, err := c.Blocks(ctx)
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case b, ok := <-blocks:
			if !ok {
				return errors.Join(ctx.Err(), errClosed)
			}
			w.block(b.Height, b.Time)
			if err := chain.OnTime(time.Now(), b.Time); err != nil {
				return err
			}
			if b.Height == 1 || b.Height%100 == 0 {
				say(fmt.Sprintf("height %d", b.Height))
			}
		}
	}
}

// ExportChain is the state of a stopped validator as the genesis, in JSON, of a chain that goes on with the next height.
func ExportChain(dir string) ([]byte, error) {
	if _, err := readValidator(dir); err != nil {
		return nil, err
	}
	doc, err := chain.Export(dir)
	if err != nil {
		return nil, err
	}
	return cmtjson.MarshalIndent(doc, "", "  ")
}

// ImportChain puts the genesis of a file in the folder of a stopped validator, and returns where the chain is that was there;
// "" if there was none.
func ImportChain(dir, file string) (aside string, err error) {
	if _, err := readValidator(dir); err != nil {
		return "", err
	}
	doc, err := cmttypes.GenesisDocFromFile(file)
	if err != nil {
		return "", err
	}
	return chain.Import(dir, doc)
}

func readValidator(dir string) (f validatorFile, err error) {
	if err := readJSON(filepath.Join(dir, fileValidator), &f); err != nil {
		return f, fmt.Errorf("%w: %w", ErrNoValidator, err)
	}
	return f, nil
}
