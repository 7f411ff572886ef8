// Package flood lets hostile accounts send all that they can at the same time to a validator with CometBFT in this
// process, and measures how long its blocks take. It judges no result; that is node/benchmark/attack.
package flood

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/benchmark"
)

// Flood is what hostile accounts do to a chain at the same time.
type Flood struct {
	Orders   int // open orders that no offer matches
	Pools    int // each with one machine
	Disputes int // of which all moves come at once
	Free     int // transactions without a fee that wait for their blocks
	Asking   int // connections that ask for simulations, and as many that bring free transactions, without end
	Blocks   int // that are measured
}

// Report is how long blocks take.
type Report struct {
	Quiet   float64 `json:"quiet_seconds"` // of a block without anything, on average
	Flooded float64 `json:"flooded_seconds"`
	Moves   int     `json:"moves"`   // of disputes that blocks took meanwhile
	Free    int     `json:"free"`    // transactions without a fee that they took
	Asked   int     `json:"asked"`   // simulations that were answered, or refused
	Slowest float64 `json:"slowest"` // seconds of the slowest block of the flood
}

// floodBlocks is the time between two blocks of a network.
const floodBlocks = time.Second

// settled is by which block a chain has its first beacon.
const settled = 6

// Flooded measures a validator with CometBFT in this process: first alone, then on a chain on which everything
// happens at once.
func (f Flood) Flooded(ctx context.Context) (r Report, err error) {
	scene, err := f.scene()
	if err != nil {
		return r, err
	}
	quiet, err := f.measure(ctx, scene.bare, nil, &r)
	if err != nil {
		return r, err
	}
	flooded, err := f.measure(ctx, scene.full, scene, &r)
	r.Quiet, r.Flooded = benchmark.Rounded(middle(quiet).Seconds(), 3), benchmark.Rounded(middle(flooded).Seconds(), 3)
	if err == nil {
		r.Slowest = benchmark.Rounded(slices.Max(flooded).Seconds(), 3)
	}
	return r, err
}

func middle(list []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range list {
		sum += d
	}
	return sum / time.Duration(max(1, len(list)))
}

// measure starts a chain, floods it with the transactions of a scene, if there is one, and returns how long its
// blocks take.
func (f Flood) measure(
	ctx context.Context, doc *cmttypes.GenesisDoc, s *scene, r *Report,
) (took []time.Duration, err error) {
	flood, stop := context.WithCancel(ctx)
	defer stop()
	dir, err := os.MkdirTemp("", "starling-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	seed := floodSeed
	v, err := chain.Start(ctx, chain.Config{
		Home: filepath.Join(dir, "validator"), ChainID: doc.ChainID, Seed: seed[:], BlockTime: floodBlocks, Genesis: doc,
	})
	if err != nil {
		return nil, err
	}
	defer v.Stop()
	if _, err := Reaches(ctx, v, settled); err != nil {
		return nil, err
	}
	var crowd *flooding
	if s != nil {
		if crowd, err = s.begin(flood, v, f); err != nil {
			return nil, err
		}
	}
	first, err := Reaches(ctx, v, settled)
	if err != nil {
		return nil, err
	}
	last := first + int64(f.Blocks)
	if _, err := Reaches(ctx, v, last); err != nil {
		return nil, err
	}
	if took, err = intervals(ctx, v, first, last); err != nil {
		return nil, err
	}
	if crowd != nil {
		stop()
		err = crowd.ended(ctx, v, r)
	}
	return took, err
}

// intervals are the times from each block to the next, as their headers have them.
func intervals(ctx context.Context, v *chain.Validator, first, last int64) (list []time.Duration, err error) {
	var before time.Time
	for h := first; h <= last; h++ {
		c, err := v.Client().Commit(ctx, &h)
		if err != nil {
			return nil, err
		}
		if h > first {
			list = append(list, c.Time.Sub(before))
		}
		before = c.Time
	}
	return list, nil
}

// A scene is a chain on which a flood may begin, and the same without anything.
type scene struct {
	bare, full *cmttypes.GenesisDoc
	cast       *litigants
	spammers   []*spammer
}

// floodSeed makes the keys of the validator.
var floodSeed = [32]byte{85}

func (f Flood) scene() (*scene, error) {
	s := &scene{}
	var err error
	if s.cast, err = newLitigants(f.Disputes); err != nil {
		return nil, err
	}
	accounts := s.cast.accounts()
	for i := range max(1, f.Free/perSpammer) {
		p := newSpammer(i)
		s.spammers = append(s.spammers, p)
		accounts = append(accounts, chain.Funded{Address: p.key.Address(), Amount: 1_000_000})
	}
	begins := func() (*cmttypes.GenesisDoc, error) {
		begin := time.Now().Add(-time.Second).Truncate(time.Second)
		return chain.Genesis("bench", begin, []identity.Keys{identity.NewKeys(floodSeed)}, accounts)
	}
	if s.bare, err = begins(); err != nil {
		return nil, err
	}
	if s.full, err = begins(); err != nil {
		return nil, err
	}
	s.full.AppState, err = f.fill(s.full.AppState, s.cast)
	return s, err
}

// entry is an element of a collection in a genesis.
type entry struct {
	Key   any `json:"key"`
	Value any `json:"value,omitempty"`
}

// fill adds orders, pools and runs to the state of a new chain.
func (f Flood) fill(raw json.RawMessage, l *litigants) (json.RawMessage, error) {
	var state map[string]json.RawMessage
	if err := json.Unmarshal(raw, &state); err != nil {
		return nil, err
	}
	g := map[string]map[string][]entry{"market": {}, "registry": {}}
	add := func(module, collection string, key, value any) {
		g[module][collection] = append(g[module][collection], entry{key, value})
	}
	f.orders(add)
	f.pools(add)
	l.enter(add)
	for module, collections := range g {
		if err := merge(state, module, collections); err != nil {
			return nil, fmt.Errorf("benchmark: genesis of %s: %w", module, err)
		}
	}
	var err error
	if state["training"], err = l.genesis(); err != nil {
		return nil, err
	}
	return json.Marshal(state)
}

// merge adds collections to those of a module.
func merge(state map[string]json.RawMessage, module string, collections map[string][]entry) error {
	all := map[string]json.RawMessage{}
	if len(state[module]) > 0 {
		if err := json.Unmarshal(state[module], &all); err != nil {
			return err
		}
	}
	for name, entries := range collections {
		text, err := json.Marshal(entries)
		if err != nil {
			return err
		}
		all[name] = text
	}
	text, err := json.Marshal(all)
	state[module] = text
	return err
}

// name of a thing of a flood.
func numbered(what string, i int) string { return "flood-" + what + "-" + strconv.Itoa(i) }

// Reaches waits until a validator has executed a block of at least a height.
func Reaches(ctx context.Context, v *chain.Validator, height int64) (int64, error) {
	c := client.New(v.Client(), wallet.KeyFromSeed(canon.Sum("bench/looker")))
	defer c.Close()
	blocks, err := c.Blocks(ctx)
	if err != nil {
		return 0, err
	}
	for b := range blocks {
		if b.Height >= height {
			return b.Height, nil
		}
	}
	return 0, errors.Join(errors.New("benchmark: the blocks ended"), ctx.Err())
}
