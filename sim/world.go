package sim

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	dbm "github.com/cosmos/cosmos-db"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/clock"
	"github.com/starling-network/starling/sim/ledger"
	"github.com/starling-network/starling/sim/store"
	"github.com/starling-network/starling/sim/wires"
)

// Network is a network under virtual time.
type Network struct {
	config  Config
	clock   clock.Clock
	random  *rand.Rand
	ledger  *ledger.Ledger
	pool    store.Pool // of the blobs of all parties
	parties []*process // the consumer first
	at      map[string]*process
	cuts    cuts
	wires   wires.Net // between stages of models
	waiting map[[sha256.Size]byte]func(transaction.Result, error)
	opened  map[string]*bundle.Job // of jobs that a party has opened
	seen    map[string]*role.Block // runs by job as they are after the latest block, which everybody reads the same
	digest  hash.Hash
	broken  error
	minted  uint64           // by the genesis, for the parties
	circle  adversary.Memory // of those who break the rules
	checks  []check.Checker
	over    bool
	still   bool // the latest block had no transactions
}

// AccountOf is the account of the party with a name.
func AccountOf(name string) string { return keyOf(name).Address() }

func keyOf(name string) *wallet.Key { return wallet.KeyFromSeed(canon.Sum("sim/key", []byte(name))) }

// New makes a network.
func New(c Config, checks ...check.Checker) (*Network, error) {
	o := c.order()
	c.Order = &o // which does not change any more, and takes time to make
	w := &Network{
		config: c, random: rand.New(rand.NewPCG(c.Seed, 0)), at: map[string]*process{}, cuts: cuts{},
		waiting: map[[sha256.Size]byte]func(transaction.Result, error){}, seen: map[string]*role.Block{},
		opened: map[string]*bundle.Job{}, digest: sha256.New(), checks: checks}
	var keys []identity.Keys
	for i := range c.Validators {
		keys = append(keys, identity.NewKeys(canon.Sum("sim/validator", []byte{byte(i)})))
	}
	accounts := []chain.Funded{{Address: keyOf("consumer").Address(), Amount: Funds + c.order().Budget}}
	names := c.Names()
	for _, n := range c.Joins {
		if !n.Earns {
			names = append(names, n.Name)
		}
	}
	for _, name := range names {
		accounts = append(accounts, chain.Funded{Address: keyOf(name).Address(), Amount: Funds + c.stake()})
	}
	for _, a := range accounts {
		w.minted += a.Amount
	}
	doc, err := chain.Genesis("sim-"+strconv.FormatUint(c.Seed, 10), time.Unix(1_000_000_000, 0), keys, accounts)
	if err != nil {
		return nil, err
	}
	if c.Genesis != nil {
		if err := c.Genesis(doc); err != nil {
			return nil, err
		}
	}
	if w.ledger, err = ledger.New(doc, keys, nil, cmp.Or[dbm.DB](c.Database, dbm.NewMemDB())); err != nil {
		return nil, err
	}
	for _, i := range c.Withhold {
		w.ledger.Withhold[i] = true
	}
	if _, err := w.ledger.Block(context.Background(), 0); err != nil {
		return nil, err
	}
	w.populate()
	return w, nil
}

func (w *Network) populate() {
	c := w.config
	add := func(name string, class crew.Role) *process {
		p := newProcess(w, name, class.Registered())
		p.class = class
		p.link = c.Link
		p.unit = c.Unit + time.Duration(w.random.Float64()*float64(c.Unit))
		if m, ok := c.Machines[name]; ok {
			p.link, p.unit, p.machine = m.Link, m.Unit, m
		}
		p.act = c.Acts[name]
		w.parties = append(w.parties, p)
		w.at[address(name)] = p
		return p
	}
	consumer := add("consumer", 0)
	order := func() { consumer.spawn(func(ctx context.Context) { w.must(consumer.order(ctx)) }) }
	if c.OrderAt > 0 {
		w.clock.After(c.OrderAt, order)
	} else {
		order()
	}
	for i, name := range c.Names() {
		r := crew.Worker
		switch {
		case i >= c.Workers:
			r = crew.Verifier
		case i >= c.Workers-c.Generators:
			r = crew.Generator
		}
		p := add(name, r)
		p.spawn(func(ctx context.Context) { w.must(p.enlist(ctx)) })
	}
	for _, n := range c.Joins {
		p := add(n.Name, n.Role)
		p.up, p.earns = false, n.Earns
		w.clock.After(n.At, func() {
			p.restart()
			p.spawn(func(ctx context.Context) { w.must(p.enlist(ctx)) })
		})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Leaves)) {
		w.clock.After(c.Leaves[name], w.at[address(name)].drain)
	}
	for _, x := range c.Pauses {
		p := w.at[address(x.Who)]
		w.clock.After(x.At, func() { p.pause(x) })
		w.clock.After(x.At+x.For, p.resume)
	}
	for _, f := range c.Faults {
		w.Inject(f)
	}
	w.clock.After(c.BlockTime, w.block)
}

// enlist registers a party with its stake and its price.
func (p *process) enlist(ctx context.Context) error {
	self := registry.Participant{
		Roles: []crew.Role{p.role}, PeerID: p.name, Addrs: []string{address(p.name)}, Device: "simulated",
		Stake: p.world.config.stake(), Hardware: p.machine.Hardware, Tier: p.machine.Tier, Earning: p.earns}
	if p.earns {
		return p.chain.Registry.Enlist(ctx, self,
			market.Offer{Role: p.class, Price: cmp.Or(p.machine.Price, price), Slots: 1})
	}
	if err := p.chain.Registry.Register(ctx, self); err != nil {
		return err
	}
	return p.chain.Market.Offer(ctx, p.class, cmp.Or(p.machine.Price, price), 1)
}

// order ships the job and locks its budget.
func (p *process) order(ctx context.Context) error {
	c := p.world.config
	cid, _, genesis, err := bundle.Ship(ctx, p.store, c.Job.ID(), c.Job.Task, c.Job.Genesis, "", nil)
	if err != nil {
		return err
	}
	o := c.order()
	o.Terms.SpecCID, o.Terms.Genesis = cid, genesis
	t := c.Job.Task
	return p.chain.Market.Order(ctx, o, referee.Opening(t.Spec, t.Step, t.Corpus.Manifest(bundle.ShardTokens)))
}

// Inject lets a fault happen, so long from now.
func (w *Network) Inject(f Fault) {
	p := w.at[address(f.Who)]
	if f.From == "" {
		w.clock.After(f.At, p.crash)
		w.clock.After(f.At+f.For, p.restart)
		return
	}
	link := between(f.Who, f.From)
	w.clock.After(f.At, func() { w.cuts[link]++; w.trace("cut", link) })
	w.clock.After(f.At+f.For, func() { w.cuts[link]--; w.trace("mended", link) })
}

func between(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

// cuts counts, for two parties by name, the faults that keep them apart.
type cuts map[[2]string]int

func (c cuts) apart(a, b *process) bool { return c[between(a.name, b.name)] > 0 }

// isolated reports whether a party cannot reach the chain.
func (c cuts) isolated(p *process) bool { return c[between(p.name, Chain)] > 0 }

// arrive delivers a transaction, once its sender can reach the chain.
func (w *Network) arrive(from *process, tx []byte, answer func(transaction.Result, error)) {
	if w.cuts.isolated(from) {
		w.clock.After(w.config.BlockTime, func() { w.arrive(from, tx, answer) })
		return
	}
	w.deliver(tx, answer)
}

// deliver puts a transaction where the next block finds it. The answer comes with that block, or at once if it is
// refused.
func (w *Network) deliver(tx []byte, answer func(transaction.Result, error)) {
	r, err := w.ledger.Check(tx)
	if err == nil {
		err = transaction.Refusal(r.Codespace, r.Code, r.Log)
	}
	if err != nil {
		answer(transaction.Result{}, err)
		return
	}
	w.waiting[sha256.Sum256(tx)] = answer
}

// block makes a block and tells everybody.
func (w *Network) block() {
	in, err := w.ledger.Block(context.Background(), w.clock.Now)
	if err != nil {
		w.fail(err)
		return
	}
	clear(w.seen)
	w.still = len(in) == 0
	height := w.ledger.Height
	w.trace("block", height, len(in), fmt.Sprintf("%x", w.ledger.AppHash))
	for _, t := range in {
		id := sha256.Sum256(t.Tx)
		answer := w.waiting[id]
		delete(w.waiting, id)
		answer(transaction.Result{Height: height, GasUsed: t.Result.GasUsed, Events: t.Result.Events},
			transaction.Refusal(t.Result.Codespace, t.Result.Code, t.Result.Log))
	}
	for _, p := range w.parties {
		if delay := p.link.Delay(w.random, 0); !w.cuts.isolated(p) {
			w.clock.After(delay, func() { p.block(height) })
		}
	}
	for _, c := range w.checks {
		if err := c.Block(w); err != nil {
			w.fail(fmt.Errorf("block %d: %w", height, err))
		}
	}
	s, err := w.State()
	if err == nil && w.config.Forgets {
		w.pool.Enter(s.Round, oldestKept(s))
	}
	switch {
	case err == nil && (s.Phase == progress.Done || s.Phase == progress.Halted):
		w.over = true
	case err != nil && !errors.Is(err, client.ErrNotFound):
		w.fail(err)
	case height >= w.config.MaxBlocks:
		w.fail(fmt.Errorf("sim: the run is not over after %d blocks: phase %d of round %d", height, s.Phase, s.Round))
	default:
		w.clock.After(w.config.BlockTime, w.block)
	}
}

// kept is how many rounds before the oldest one that is not final have their blobs: its base checkpoint was made in the
// round before, of updates that slow members may still fetch.
const kept = 4

// oldestKept is the oldest round whose blobs are kept, since a round that is not final may read them.
func oldestKept(s run.State) uint32 {
	oldest := s.Round
	for _, l := range s.Stored() {
		oldest = min(oldest, l.Round)
	}
	return oldest - min(oldest, kept)
}

// State of the run.
func (w *Network) State() (run.State, error) {
	b, err := w.observe(context.Background(), client.Member{Client: w.ledger.Queries, Job: w.config.Job.ID()},
		w.ledger.Height)
	if b == nil {
		return run.State{}, cmp.Or(err, error(client.ErrNotFound))
	}
	return b.Run, nil
}

// observe is what a member sees of its run. The run is read once for all members, which change nothing of it.
func (w *Network) observe(ctx context.Context, m client.Member, height int64) (*role.Block, error) {
	b := w.seen[m.Job]
	if b == nil {
		var err error
		if b, err = m.Observe(ctx, height); b == nil || err != nil {
			return nil, err
		}
		w.seen[m.Job] = b
	}
	return &role.Block{Height: height, Run: b.Run, Disputes: b.Disputes}, nil
}

// Chain reads the chain as anybody can.
func (w *Network) Chain() *client.Client { return w.ledger.Queries }

// Now is the virtual time since the start.
func (w *Network) Now() time.Duration { return w.clock.Now }

// Balances of all accounts that hold coins, in uzen.
func (w *Network) Balances(ctx context.Context) (map[string]uint64, error) {
	return w.ledger.Balances(ctx)
}

// Genesis is how the network begins.
func (w *Network) Genesis() check.Genesis {
	return check.Genesis{Job: w.config.Job, Stake: w.config.stake(),
		Minted: w.minted + uint64(len(w.ledger.Validators))*identity.SelfStake}
}

// Latest is the latest block.
func (w *Network) Latest() check.Block {
	return check.Block{Height: w.ledger.Height, Now: w.clock.Now, Events: w.ledger.Events, Still: w.still}
}

// Height of the latest block.
func (w *Network) Height() int64 { return w.ledger.Height }

// Machine of a party.
func (w *Network) Machine(name string) Machine {
	p := w.at[address(name)]
	return Machine{Link: p.link, Unit: p.unit}
}

// Usage of a party so far, with the time of the unit under way.
func (w *Network) Usage(name string) Usage {
	p := w.at[address(name)]
	u := p.usage
	if p.busy {
		u.Worked += w.clock.Now - p.since
	}
	return u
}

// ID is the account of a party.
func (w *Network) ID(name string) string { return w.at[address(name)].key.Address() }

// Play lets time pass until the run is over, and returns the digest of everything that happened.
func (w *Network) Play() (canon.Digest, error) {
	for !w.over && w.broken == nil && w.clock.Step() {
	}
	for _, p := range w.parties {
		p.crash()
	}
	for _, c := range w.checks {
		if w.broken == nil {
			w.broken = c.End(w)
		}
	}
	return canon.Digest(w.digest.Sum(nil)), w.broken
}

func (w *Network) fail(err error) { w.broken = errors.Join(w.broken, err) }

func (w *Network) must(err error) {
	if err != nil && !errors.Is(err, clock.ErrKilled) {
		w.fail(err)
	}
}

// trace records that something happened.
func (w *Network) trace(what ...any) {
	line := fmt.Sprintln(append([]any{w.clock.Now}, what...)...)
	w.digest.Write([]byte(line))
	if w.config.Log != nil {
		w.config.Log(line[:len(line)-1])
	}
}
