// Package chain measures what commitments, snapshots and random operations cost the application of the chain.
// There is no consensus: it executes blocks.
package chain

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"cosmossdk.io/log/v2"
	abcicli "github.com/cometbft/cometbft/abci/client"
	abci "github.com/cometbft/cometbft/abci/types"
	cmtbytes "github.com/cometbft/cometbft/libs/bytes"
	rpcclient "github.com/cometbft/cometbft/rpc/client"
	ctypes "github.com/cometbft/cometbft/rpc/core/types"
	dbm "github.com/cosmos/cosmos-db"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/garbage"
	"github.com/starling-network/starling/chain/identity"
	xmarket "github.com/starling-network/starling/chain/x/market"
	xregistry "github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/training"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Options say how long the chain is measured.
type Options struct {
	Registered []int // workers that are registered, of each measurement
	Blocks     int   // of a thousand commitments each
	Random     RandomOptions
}

// Quick takes less than a minute on a machine that does nothing else, ThoroughChain some minutes.
var (
	Quick    = Options{Registered: []int{100, 100_000}, Blocks: 1, Random: RandomOptions{Seeds: 2, Blocks: 30}}
	Thorough = Options{Registered: []int{100, 1_000, 10_000, 100_000}, Blocks: 20,
		Random: RandomOptions{Seeds: 20, Blocks: 500}}
)

// Report is what commitments cost the chain.
type Report struct {
	Bars    []benchmark.Bar `json:"bars"`
	Table   []CommitCost    `json:"table"`
	Repeats bool            `json:"repeats"` // every block had the same application hash when it was executed again
	Random  []Replayed      `json:"random"`
}

// CommitCost is the cost of a commitment with a number of registered workers: its check for the mempool, its
// execution in a block of a thousand, and its part of the commit to disk.
type CommitCost struct {
	Registered int     `json:"registered"`
	PerSecond  float64 `json:"per_second"` // by the clock, of all blocks
	Slowest    float64 `json:"slowest"`    // of the slowest block
	CPU        float64 `json:"cpu_us"`     // processor time of one, microseconds
}

// batch is how many commitments a block has: one of each member of one run, each for a unit of its own.
const batch = terms.MaxUnits - 24

// Measure measures the application of one validator over a database on disk, driven as CometBFT drives it and without
// its network: every commitment is checked and executed, in blocks of a thousand, and every block committed.
func Measure(ctx context.Context, o Options) (*Report, error) {
	if err := benchmark.Positive("blocks", o.Blocks); err != nil {
		return nil, err
	}
	defer garbage.CollectLess()()
	r := &Report{Repeats: true}
	for _, n := range o.Registered {
		first, hashes, err := commits(ctx, n, o.Blocks)
		if err != nil {
			return nil, err
		}
		r.Table = append(r.Table, first)
		if n == o.Registered[0] {
			_, again, err := commits(ctx, n, o.Blocks)
			if err != nil {
				return nil, err
			}
			r.Repeats = slices.Equal(hashes, again)
		}
	}
	joined, err := joining(ctx)
	if err != nil {
		return nil, err
	}
	if r.Random, err = randomly(ctx, o.Random); err != nil {
		return nil, err
	}
	least, most := r.Table[0], r.Table[len(r.Table)-1]
	slowest := least.PerSecond
	for _, c := range r.Table {
		slowest = min(slowest, c.PerSecond)
	}
	r.Bars = []benchmark.Bar{
		benchmark.AtLeast("commitments a second, one validator", slowest, 1000),
		benchmark.Below(fmt.Sprintf("cost of a commitment, %d workers / %d, processor time", most.Registered,
			least.Registered),
			most.CPU/least.CPU, 1.25),
		benchmark.Below("1,000 orders x 10,000 offers matched, ms of processor time", matching(), 100),
		benchmark.AtLeast("same application hashes when repeated", map[bool]float64{true: 1}[r.Repeats], 1),
		benchmark.Below("state sync of a new validator, 10,000 accounts, s", joined, 30),
	}
	r.Bars = append(r.Bars, o.Random.bars(r.Random)...)
	return r, nil
}

// matching is how long it takes to match a thousand orders with ten thousand offers in one block, one after the other,
// in milliseconds of processor time: the best of three.
func matching() float64 {
	r := rand.New(rand.NewPCG(1, 1))
	pick := func(names ...string) string { return names[r.IntN(len(names))] }
	lots := make([]market.Listing, 10_000)
	for i := range lots {
		role := crew.Worker
		if i%5 == 0 {
			role = crew.Verifier
		}
		lots[i] = market.Listing{
			Offer: market.Offer{ID: "account-" + strconv.Itoa(i), Role: role, Price: 100 + r.Uint64N(900), Slots: 1,
				At: r.Int64N(1000)},
			Profile: market.Profile{
				Class: registry.Class(r.IntN(6)), Tier: registry.Tier(r.IntN(4)), Memory: r.Uint64N(80 << 10),
				Latency: r.Uint32N(200), Cover: math.MaxUint64,
				Region: pick("eu", "us", "asia", "af", "sa"), Jurisdiction: pick("DE", "FR", "US", "JP", "BR", "ZA"),
				Domain: strconv.Itoa(r.IntN(500)),
			},
		}
	}
	orders := make([]market.Order, 1000)
	for i := range orders {
		id := "job-" + strconv.Itoa(i)
		orders[i] = market.Order{
			ID: id, Terms: terms.Terms{Job: id, Rounds: 1, Units: 4, UnitFlops: 1 << 40}, Budget: 1 << 40, PriceCap: 800,
			Workers: market.Workers{Min: 2, Target: 6, Max: 8}, Verifiers: 1,
		}
		switch i % 3 {
		case 0:
			orders[i].Conditions = market.Conditions{Machines: []market.Machine{{Memory: 16 << 10}},
				Classes: []registry.Class{registry.Professional, registry.Datacentre}, Domains: 2}
		case 1:
			orders[i].Conditions = market.Conditions{Machines: []market.Machine{{Memory: 8 << 10}},
				Regions: []string{"eu", "us"}, NotJurisdictions: []string{"FR"}, Tier: registry.Bronze}
		}
	}
	best := math.Inf(1)
	for range 3 {
		before, _ := benchmark.Usage()
		b := market.NewBook(lots, canon.Sum("bench/beacon"))
		for _, o := range orders {
			if lease, why := b.Match(o); why == market.Matched {
				b.Take(o, lease.Members)
			}
		}
		after, _ := benchmark.Usage()
		best = min(best, float64((after-before).Microseconds())/1e3)
	}
	return best
}

// ledger is an application with a run of a thousand members in every job.
type ledger struct {
	rpcclient.Client // of which only queries are used
	app              *app.App
	calls            abcicli.Client
	workers          []*wallet.Key
	jobs             []run.State
	height           int64
	time             time.Time
}

// ABCIQueryWithOptions implements rpcclient.Client.
func (l *ledger) ABCIQueryWithOptions(ctx context.Context, path string, data cmtbytes.HexBytes,
	_ rpcclient.ABCIQueryOptions) (*ctypes.ResultABCIQuery, error) {
	r, err := l.app.Query(ctx, &abci.RequestQuery{Path: path, Data: data})
	if err != nil {
		return nil, err
	}
	return &ctypes.ResultABCIQuery{Response: *r}, nil
}

// commits measures blocks full of commitments, each to a run of its own, and returns the application hashes.
func commits(ctx context.Context, registered, blocks int) (c CommitCost, hashes []string, err error) {
	dir, err := os.MkdirTemp("", "starling-bench-")
	if err != nil {
		return c, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	l, err := newLedger(dir, registered, 1+blocks)
	if err != nil {
		return c, nil, err
	}
	defer func() { err = errors.Join(err, l.app.Close()) }()
	if _, err := l.block(ctx, nil); err != nil {
		return c, nil, err
	}
	c.Registered = registered
	var elapsed, slowest, worked time.Duration
	for i, s := range l.jobs {
		if err := ctx.Err(); err != nil {
			return c, nil, err
		}
		txs, err := l.sign(ctx, s)
		if err != nil {
			return c, nil, err
		}
		start := time.Now()
		before, _ := benchmark.Usage()
		hash, err := l.block(ctx, txs)
		if err != nil {
			return c, nil, err
		}
		after, _ := benchmark.Usage()
		took := time.Since(start)
		hashes = append(hashes, hash)
		if i > 0 { // the accounts have sent something since the application was opened
			elapsed, slowest, worked = elapsed+took, max(slowest, took), worked+after-before
		}
	}
	n := float64(batch * blocks)
	c.PerSecond, c.Slowest = benchmark.Rounded(n/elapsed.Seconds(), 0), benchmark.Rounded(batch/slowest.Seconds(), 0)
	c.CPU = benchmark.Rounded(float64(worked.Nanoseconds())/1e3/n, 1)
	return c, hashes, nil
}

// newLedger opens a chain whose genesis has runs that have begun.
func newLedger(dir string, registered, jobs int) (*ledger, error) {
	l := &ledger{time: time.Unix(1_800_000_000, 0).UTC()}
	var accounts []chain.Funded
	var members []crew.Member
	for i := range batch {
		k := wallet.KeyFromSeed(canon.Sum("bench/worker", binary.LittleEndian.AppendUint64(nil, uint64(i))))
		l.workers = append(l.workers, k)
		accounts = append(accounts, chain.Funded{Address: k.Address(), Amount: 1})
		members = append(members, crew.Member{ID: k.Address(), Role: crew.Worker, Price: 1})
	}
	slices.SortFunc(members, func(a, b crew.Member) int { return strings.Compare(a.ID, b.ID) })
	for i := range jobs {
		s, err := begin("job-"+strconv.Itoa(i), members)
		if err != nil {
			return nil, err
		}
		l.jobs = append(l.jobs, s)
	}
	doc, err := chain.Genesis("bench", l.time, []identity.Keys{identity.NewKeys(canon.Sum("bench/validator"))}, accounts)
	if err != nil {
		return nil, err
	}
	state, err := l.genesis(doc.AppState, registered)
	if err != nil {
		return nil, err
	}
	db, err := dbm.NewDB("application", dbm.GoLevelDBBackend, dir)
	if err != nil {
		return nil, err
	}
	if l.app, err = app.New(log.NewNopLogger(), db, app.Config{ChainID: doc.ChainID}); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if l.calls, err = chain.Calls(l.app).NewABCIClient(); err != nil {
		return nil, errors.Join(err, l.app.Close())
	}
	params := doc.ConsensusParams.ToProto()
	params.Abci.VoteExtensionsEnableHeight = 0 // no votes: the runs have begun, and commitments need no beacon
	_, err = l.app.InitChain(&abci.RequestInitChain{ChainId: doc.ChainID, Time: l.time, InitialHeight: 1,
		ConsensusParams: &params, AppStateBytes: state})
	return l, err
}

// begin returns a run whose units are assigned.
func begin(job string, members []crew.Member) (run.State, error) {
	digest := canon.Sum("bench/job", []byte(job))
	s, err := run.New(terms.Terms{
		Job: job, Spec: digest, SpecCID: "spec", Genesis: terms.Checkpoint{Root: digest, CID: "genesis"},
		Rounds: 10, Units: batch, Segments: 4, UnitFlops: 1 << 40, Window: 4,
		Deadlines: terms.Deadlines{Train: 1000, Audit: 1000, Attest: 1000, Challenge: 10},
	}, members, 0)
	if err != nil {
		return s, err
	}
	s, _ = s.Tick(transition.Env{Height: 1, Beacon: canon.Sum("bench/beacon")})
	if len(s.Units) != batch {
		return s, fmt.Errorf("benchmark: the run dealt %d units, not %d", len(s.Units), batch)
	}
	return s, nil
}

// genesis adds participants and runs to the state of a new chain.
func (l *ledger) genesis(raw json.RawMessage, registered int) (json.RawMessage, error) {
	type entry struct {
		Key   any `json:"key"`
		Value any `json:"value"`
	}
	var state map[string]json.RawMessage
	if err := json.Unmarshal(raw, &state); err != nil {
		return nil, err
	}
	var participants, jobs, escrows []entry
	add := func(id string) {
		participants = append(participants,
			entry{id, registry.Participant{ID: id, Roles: []crew.Role{crew.Worker}, PeerID: "peer", Device: "bench",
				Stake: 1_000_000}})
	}
	for _, k := range l.workers[:min(registered, batch)] {
		add(k.Address())
	}
	for i := batch; i < registered; i++ {
		d := canon.Sum("bench/registered", binary.LittleEndian.AppendUint64(nil, uint64(i)))
		add(sdk.AccAddress(d[:20]).String())
	}
	for _, s := range l.jobs {
		o := market.Order{ID: s.Terms.Job, Consumer: l.workers[0].Address(), Terms: s.Terms, Budget: 1 << 40, PriceCap: 1}
		jobs = append(jobs, entry{o.ID, xmarket.Job{Order: o, Status: xmarket.Running}})
		escrows = append(escrows, entry{o.ID, market.Escrow{Budget: o.Budget}})
	}
	var errs [3]error
	state[xregistry.Name], errs[0] = json.Marshal(map[string][]entry{"participants": participants})
	state[xmarket.Name], errs[1] = json.Marshal(map[string][]entry{"jobs": jobs, "escrows": escrows})
	state[training.Name], errs[2] = training.Genesis(nil, l.jobs...)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return json.Marshal(state)
}

// sign makes the commitments to all units of a run.
func (l *ledger) sign(ctx context.Context, s run.State) (txs [][]byte, err error) {
	keys := map[string]*wallet.Key{}
	for _, k := range l.workers {
		keys[k.Address()] = k
	}
	for _, u := range s.Units {
		k := keys[u.Worker]
		number, sequence, err := client.New(l, k).Sequence(ctx)
		if err != nil {
			return nil, err
		}
		d := canon.Sum("bench/commitment", []byte(s.Terms.Job), []byte(u.Worker))
		m := &trainingpb.MsgCommit{
			Sender: u.Worker, Job: s.Terms.Job, Unit: u.Index, Attempt: u.Attempt,
			Commitment: runpb.FromCommitment(work.Commitment{
				Segments: []canon.Digest{d, d, d, d, d}, Update: d, UpdateCID: d.String(), Bytes: 1 << 20, Log: d.String(),
				HiddenRoots: d,
			}),
		}
		tx, err := transaction.Sign(ctx, k, transaction.Account{ChainID: "bench", Number: number, Sequence: sequence,
			Fee: transaction.Fee{Gas: commitGas}}, 0, m)
		if err != nil {
			return nil, err
		}
		txs = append(txs, tx)
	}
	return txs, nil
}

// commitGas is more than a commitment needs in a run of as many members.
const commitGas = 20_000_000

// bringers is how many connections bring transactions.
const bringers = 8

// check brings transactions to the pool, as CometBFT does for those who send them.
func (l *ledger) check(ctx context.Context, txs [][]byte) error {
	var g errgroup.Group
	g.SetLimit(bringers)
	for _, tx := range txs {
		g.Go(func() error {
			r, err := l.calls.CheckTx(ctx, &abci.RequestCheckTx{Tx: tx, Type: abci.CheckTxType_New})
			if err != nil || r.Code != 0 {
				return errors.Join(fmt.Errorf("benchmark: a commitment is refused: %v", r), err)
			}
			return nil
		})
	}
	return g.Wait()
}

// block checks transactions, executes them in a block and commits it.
func (l *ledger) block(ctx context.Context, txs [][]byte) (hash string, err error) {
	if err := l.check(ctx, txs); err != nil {
		return "", err
	}
	l.height++
	l.time = l.time.Add(time.Second)
	done, err := l.app.FinalizeBlock(&abci.RequestFinalizeBlock{Txs: txs, Height: l.height, Time: l.time})
	if err != nil {
		return "", err
	}
	for _, r := range done.TxResults {
		if r.Code != 0 {
			return "", fmt.Errorf("benchmark: a commitment fails: %s", r.Log)
		}
	}
	_, err = l.app.Commit()
	return fmt.Sprintf("%x", done.AppHash), err
}
