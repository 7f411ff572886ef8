// Package random plays the chain alone, under accounts that send random messages: the simulation of the Cosmos SDK
// (x/simulation) on the real application. The SDK's engine makes the blocks, lets validators miss votes and sign twice,
// and draws from a seed what is done in each: the operations with which the SDK's modules simulate themselves, and
// those with which this package simulates ours.
//
// Every message is executed or refused with a code of its module, every module accounts for its coins after every
// block, and the same seed makes the same application hash. Whole networks, with roles, engines and links, are sim's.
package random

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"testing"

	"cosmossdk.io/log/v2"
	dbm "github.com/cosmos/cosmos-db"
	"github.com/cosmos/cosmos-sdk/testutil/sims"
	"github.com/cosmos/cosmos-sdk/types/query"
	simtypes "github.com/cosmos/cosmos-sdk/types/simulation"
	govv1 "github.com/cosmos/cosmos-sdk/x/gov/types/v1"
	"github.com/cosmos/cosmos-sdk/x/simulation"

	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/x/arena"
	"github.com/starling-network/starling/chain/x/delegation"
	"github.com/starling-network/starling/chain/x/hosting"
	"github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/reward"
	"github.com/starling-network/starling/chain/x/sale"
	"github.com/starling-network/starling/chain/x/training"
	"github.com/starling-network/starling/internal/nowork"
	"github.com/starling-network/starling/sim/random/ask"
	"github.com/starling-network/starling/sim/random/conserved"
	"github.com/starling-network/starling/sim/random/genesis"
)

// Options say what is played.
type Options struct {
	Seed   int64
	Blocks int  // until every validator is gone
	Size   int  // operations of a block, on average and about
	Books  bool // count the coins of every module after every block
	// number of executed messages: the simulation ends after the block that reaches it; 0: it ends after Blocks
	Messages int
}

// Result is what became of it.
type Result struct {
	Blocks   int              // fewer than asked for if every validator was gone
	Hash     string           // of the application after the last block, hexadecimal
	Messages map[string]Tally // by type
	Passed   int              // proposals about the rules, which from then on are others
}

// Tally counts messages.
type Tally struct{ Executed, Refused int }

// Play plays one seed.
func Play(ctx context.Context, o Options) (*Result, error) {
	if o.Blocks < 1 || o.Size < 1 {
		return nil, fmt.Errorf("random: %d blocks of %d operations: wanted at least one", o.Blocks, o.Size)
	}
	p := &player{Logger: log.NewNopLogger(), ctx: ctx, options: o, result: &Result{Messages: map[string]Tally{}}}
	a, err := app.New(p, dbm.NewMemDB(), app.Config{ChainID: chainID, Simulated: true, Referee: nowork.Open})
	if err != nil {
		return nil, err
	}
	p.app, p.sim = a, app.NewSimulation(a, genesis.Accounts, ours(a, o.Blocks)...)
	genesis.Hush(p.sim.Manager.Modules)
	// The engine asks for a test or a benchmark, which it ends when something is wrong. Nothing is timed.
	testing.Benchmark(p.play)
	if err := a.Close(); err != nil || p.err != nil {
		return nil, errors.Join(p.err, err)
	}
	return p.result, nil
}

const chainID = "random"

// player plays one seed. It is the logger of the application.
type player struct {
	log.Logger
	ctx     context.Context
	app     *app.App
	sim     app.Simulation
	options Options

	engine *testing.B
	coins  conserved.Coins
	fault  error // a rule failed at the end of a block, which left a job, a measurement or an epoch as it was
	result *Result
	err    error
}

// play runs the engine of the SDK.
func (p *player) play(b *testing.B) {
	p.engine = b
	defer func() { // also where the engine ends the goroutine
		if v := recover(); v != nil && p.err == nil {
			p.err = fmt.Errorf("random: seed %d, after block %d: %v\n%s", p.options.Seed, p.result.Blocks, v, debug.Stack())
		}
		if b.Failed() && p.err == nil {
			p.err = fmt.Errorf("random: seed %d: the engine stops after block %d", p.options.Seed, p.result.Blocks)
		}
		b.SkipNow() // a benchmark would play it again
	}()
	config := simtypes.Config{
		Seed: p.options.Seed, FuzzSeed: genesis.Start(p.options.Seed), ChainID: chainID, GenesisTime: 1_600_000_000,
		InitialBlockHeight: 1, NumBlocks: p.options.Blocks, BlockSize: p.options.Size, Lean: true, Commit: true, TB: b,
	}
	state := sims.AppStateFn(p.app.Codec, p.sim.Manager, p.app.DefaultGenesis())
	_, _, err := simulation.SimulateFromSeedX(b, log.NewNopLogger(), io.Discard, p.app.BaseApp, state,
		simtypes.RandomAccounts, p.operations(), nil, config, p.app.Codec, p)
	if err != nil {
		p.fail(err)
	}
	p.committed()
	p.governed()
}

// governed counts the proposals that passed.
func (p *player) governed() {
	ctx, err := p.app.CreateQueryContext(p.app.LastBlockHeight(), false)
	if err != nil {
		p.fail(err)
	}
	r, err := govv1.NewQueryClient(ask.Connection{App: p.app, Ctx: ctx}.GRPC()).Proposals(ctx,
		&govv1.QueryProposalsRequest{ProposalStatus: govv1.StatusPassed, Pagination: &query.PageRequest{Limit: 1000}})
	if err != nil {
		p.fail(err)
	}
	p.result.Passed = len(r.Proposals)
}

// fail ends the play.
func (p *player) fail(err error) {
	p.err = fmt.Errorf("random: seed %d, after block %d: %w", p.options.Seed, p.result.Blocks, err)
	p.engine.FailNow()
}

// AddEntry implements simulation.LogWriter: the engine tells when a block begins, and so that the one before is
// committed.
func (p *player) AddEntry(e simulation.OperationEntry) {
	if e.EntryKind != simulation.BeginBlockEntryKind {
		return
	}
	if err := p.ctx.Err(); err != nil {
		p.fail(err)
	}
	p.committed()
	executed := 0
	for _, t := range p.result.Messages {
		executed += t.Executed
	}
	if p.options.Messages > 0 && executed >= p.options.Messages {
		p.governed()
		p.engine.SkipNow()
	}
}

// Error implements log.Logger: so the modules of ours tell that a rule of theirs failed.
func (p *player) Error(what string, about ...any) {
	for _, m := range []string{registry.Name, market.Name, training.Name, reward.Name, sale.Name,
		hosting.Name, arena.Name, delegation.Name} {
		if strings.HasPrefix(what, m+": ") {
			p.fault = fmt.Errorf("%s %v", what, about)
		}
	}
}

// With implements log.Logger.
func (p *player) With(...any) log.Logger { return p }

// PrintLogs implements simulation.LogWriter.
func (p *player) PrintLogs() {}

// committed looks at the state after a block.
func (p *player) committed() {
	id := p.app.LastCommitID()
	if id.Version == 0 {
		return
	}
	p.result.Blocks, p.result.Hash = int(id.Version), fmt.Sprintf("%x", id.Hash)
	if p.fault != nil {
		p.fail(p.fault)
	}
	if !p.options.Books {
		return
	}
	if err := p.coins.Check(p.ctx, p.app, id.Version); err != nil {
		p.fail(err)
	}
}
