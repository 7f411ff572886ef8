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

	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/sim/link"
)

// Config is a network to play.
type Config struct {
	Seed       uint64
	Job        *Job
	Workers    int
	Verifiers  int
	Most       int // workers at a time, if more than Workers
	Validators int
	Slices     uint32          // in which a round is reduced; 0: everybody combines all updates
	AuditPPM   uint32          // floor of the audit rate, parts per million
	Drawn      bool            // audits go to the end of a drawn segment
	Tolerance  terms.Tolerance // zero: the work is exact
	BlockTime  time.Duration
	// blocks that a duty may take before anything is measured; 0: as long as in a job on a network
	Deadline  int64
	Link      link.Link          // of everybody
	ByteScale ByteScale          // of what goes over it
	Unit      time.Duration      // that a unit takes; up to as much again is drawn for every machine
	Combine   time.Duration      // that a member takes to make the next checkpoint of the updates of a round
	Machines  map[string]Machine // by name, of those for whom the two lines before do not hold
	Order     *market.Order      // of the consumer, but for the names of blobs; nil: one for all workers and verifiers
	Acts      map[string]adversary.Attack
	Withhold  []int   // validators that keep their part of the beacon back
	Faults    []Fault // of machines and links
	Joins     []Newcomer
	Leaves    map[string]time.Duration // who drains from when on
	Registers bool                     // heartbeats are sent, machines measured and peers reported
	MaxBlocks int64                    // after which the run counts as stuck
	Log       func(line string)        // nil: nowhere

	genesis func(*cmttypes.GenesisDoc) error // changes it; nil: nobody
}

// Machine is what a party works with, and how it offers it.
type Machine struct {
	Link     link.Link
	Unit     time.Duration     // that a unit takes
	Rate     uint64            // operations a second, which the registry measures; 0: it does not
	Hardware registry.Hardware // as it declares it
	Tier     registry.Tier     // of uptime, which it commits to
	Price    uint64            // 0: that of everybody
}

// Usage is what a party has done so far.
type Usage struct {
	Sent, Received uint64        // bytes of blobs, but for those from the consumer
	Job            uint64        // bytes from the consumer: the job and its first checkpoint
	Worked         time.Duration // at units, its own and those that it audits
	Steps          uint64        // inner steps of these, also of those that it was stopped at
}

// Fault is something that breaks and is mended.
type Fault struct {
	At, For time.Duration // from the start of the world, or from when it is told to Happen
	Who     string        // crashes and restarts; or, with From, cannot reach From and is not reached by it
	From    string        // another party, or Chain
}

// Chain stands for the validators in a Fault: who cannot reach them learns of no block, and what it sends waits.
const Chain = "chain"

// Newcomer is a machine that is switched on while the run goes on, and offers its work.
type Newcomer struct {
	Name string
	Role crew.Role
	At   time.Duration
}

// Money of the parties, in uzen, beside what the order asks for.
const (
	funds  = 1_000_000_000_000
	stake  = 100_000_000
	price  = 1_000_000_000
	budget = 500_000_000_000
)

// Network is a network under virtual time.
type Network struct {
	config  Config
	clock   clock
	random  *rand.Rand
	ledger  *ledger
	pool    pool       // of what all parties store
	parties []*process // the consumer first
	at      map[string]*process
	cuts    cuts
	waiting map[[sha256.Size]byte]func(transaction.Result, error)
	seen    map[string]*role.Block // runs by job as they are after the latest block, which everybody reads the same
	digest  hash.Hash
	broken  error
	minted  uint64           // by the genesis, for the parties
	circle  adversary.Memory // of those who break the rules
	checks  []Checker
	over    bool
	still   bool // the latest block had no transactions
}

// Checker looks at a network from outside after every block, and at its end.
type Checker interface {
	Block(w *Network) error
	End(w *Network) error
}

func keyOf(name string) *wallet.Key { return wallet.KeyFromSeed(canon.Sum("sim/key", []byte(name))) }

// Names of all parties but the consumer: the workers, then the verifiers.
func (c Config) Names() (names []string) {
	for i := range c.Workers {
		names = append(names, "worker-"+strconv.Itoa(i))
	}
	for i := range c.Verifiers {
		names = append(names, "verifier-"+strconv.Itoa(i))
	}
	return names
}

// New makes a network.
func New(c Config, checks ...Checker) (*Network, error) {
	w := &Network{
		config: c, random: rand.New(rand.NewPCG(c.Seed, 0)), at: map[string]*process{}, cuts: cuts{},
		waiting: map[[sha256.Size]byte]func(transaction.Result, error){}, seen: map[string]*role.Block{},
		digest: sha256.New(),
		checks: checks,
	}
	var keys []chain.Keys
	for i := range c.Validators {
		keys = append(keys, chain.NewKeys(canon.Sum("sim/validator", []byte{byte(i)})))
	}
	accounts := []chain.Funded{{Address: keyOf("consumer").Address(), Amount: funds + c.order().Budget}}
	names := c.Names()
	for _, n := range c.Joins {
		names = append(names, n.Name)
	}
	for _, name := range names {
		accounts = append(accounts, chain.Funded{Address: keyOf(name).Address(), Amount: funds + c.stake()})
	}
	for _, a := range accounts {
		w.minted += a.Amount
	}
	doc, err := chain.Genesis("sim-"+strconv.FormatUint(c.Seed, 10), time.Unix(1_000_000_000, 0), keys, accounts)
	if err != nil {
		return nil, err
	}
	if c.genesis != nil {
		if err := c.genesis(doc); err != nil {
			return nil, err
		}
	}
	if w.ledger, err = newLedger(doc, keys, nil); err != nil {
		return nil, err
	}
	for _, i := range c.Withhold {
		w.ledger.withhold[i] = true
	}
	if _, err := w.ledger.block(context.Background(), 0); err != nil {
		return nil, err
	}
	w.populate()
	return w, nil
}

func (w *Network) populate() {
	c := w.config
	add := func(name string, r crew.Role) *process {
		p := newProcess(w, name, r)
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
	consumer.spawn(func(ctx context.Context) { w.must(consumer.order(ctx)) })
	for i, name := range c.Names() {
		r := crew.Worker
		if i >= c.Workers {
			r = crew.Verifier
		}
		p := add(name, r)
		p.spawn(func(ctx context.Context) { w.must(p.enlist(ctx)) })
	}
	for _, n := range c.Joins {
		p := add(n.Name, n.Role)
		p.up = false
		w.clock.after(n.At, func() {
			p.restart()
			p.spawn(func(ctx context.Context) { w.must(p.enlist(ctx)) })
		})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Leaves)) {
		w.clock.after(c.Leaves[name], w.at[address(name)].drain)
	}
	for _, f := range c.Faults {
		w.Inject(f)
	}
	w.clock.after(c.BlockTime, w.block)
}

// enlist registers a party with its stake and its price.
func (p *process) enlist(ctx context.Context) error {
	if err := p.chain.Registry.Register(ctx, registry.Participant{
		Roles: []crew.Role{p.role}, PeerID: p.name, Addrs: []string{address(p.name)}, Device: "simulated",
		Stake:    p.world.config.stake(),
		Hardware: p.machine.Hardware, Tier: p.machine.Tier,
	}); err != nil {
		return err
	}
	return p.chain.Market.Offer(ctx, p.role, cmp.Or(p.machine.Price, price), 1)
}

// order ships the job and locks its budget.
func (p *process) order(ctx context.Context) error {
	c := p.world.config
	cid, _, genesis, err := bundle.Ship(ctx, p.store, c.Job.ID(), c.Job.Task, c.Job.Genesis, "")
	if err != nil {
		return err
	}
	o := c.order()
	o.Terms.SpecCID, o.Terms.Genesis = cid, genesis
	t := c.Job.Task
	return p.chain.Market.Order(ctx, o, referee.Opening(t.Spec, t.Step, t.Corpus.Manifest(bundle.ShardTokens)))
}

// stake of every party: enough for what it may be leased at the price that the order bears.
func (c Config) stake() uint64 {
	o := c.order()
	params := registry.DefaultParams()
	return max(stake, o.Stake(crew.Worker, o.PriceCap, params), o.Stake(crew.Verifier, o.PriceCap, params))
}

func (c Config) order() market.Order {
	if c.Order != nil {
		return *c.Order
	}
	n := uint32(c.Workers)
	return market.Order{
		ID: c.Job.ID(), Budget: budget, PriceCap: price,
		Workers: market.Workers{Min: n, Target: n, Max: max(n, uint32(c.Most))}, Verifiers: uint32(c.Verifiers),
		Terms: c.Terms(),
	}
}

// Inject lets a fault happen, so long from now.
func (w *Network) Inject(f Fault) {
	p := w.at[address(f.Who)]
	if f.From == "" {
		w.clock.after(f.At, p.crash)
		w.clock.after(f.At+f.For, p.restart)
		return
	}
	link := between(f.Who, f.From)
	w.clock.after(f.At, func() { w.cuts[link]++; w.trace("cut", link) })
	w.clock.after(f.At+f.For, func() { w.cuts[link]--; w.trace("mended", link) })
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
		w.clock.after(w.config.BlockTime, func() { w.arrive(from, tx, answer) })
		return
	}
	w.deliver(tx, answer)
}

// deliver puts a transaction where the next block finds it. The answer comes with that block, or at once if it is
// refused.
func (w *Network) deliver(tx []byte, answer func(transaction.Result, error)) {
	r, err := w.ledger.check(tx)
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
	in, err := w.ledger.block(context.Background(), w.clock.now)
	if err != nil {
		w.fail(err)
		return
	}
	clear(w.seen)
	w.still = len(in) == 0
	height := w.ledger.height
	w.trace("block", height, len(in), fmt.Sprintf("%x", w.ledger.appHash))
	for _, t := range in {
		id := sha256.Sum256(t.tx)
		answer := w.waiting[id]
		delete(w.waiting, id)
		answer(transaction.Result{Height: height, GasUsed: t.result.GasUsed, Events: t.result.Events},
			transaction.Refusal(t.result.Codespace, t.result.Code, t.result.Log))
	}
	for _, p := range w.parties {
		if delay := p.link.Delay(w.random, 0); !w.cuts.isolated(p) {
			w.clock.after(delay, func() { p.block(height) })
		}
	}
	for _, c := range w.checks {
		if err := c.Block(w); err != nil {
			w.fail(fmt.Errorf("block %d: %w", height, err))
		}
	}
	s, err := w.State()
	switch {
	case err == nil && (s.Phase == progress.Done || s.Phase == progress.Halted):
		w.over = true
	case err != nil && !errors.Is(err, client.ErrNotFound):
		w.fail(err)
	case height >= w.config.MaxBlocks:
		w.fail(fmt.Errorf("sim: the run is not over after %d blocks: phase %d of round %d", height, s.Phase, s.Round))
	default:
		w.clock.after(w.config.BlockTime, w.block)
	}
}

// State of the run.
func (w *Network) State() (run.State, error) {
	b, err := w.observe(context.Background(), client.Member{Client: w.ledger.queries, Job: w.config.Job.ID()},
		w.ledger.height)
	if b == nil {
		return run.State{}, cmp.Or(err, error(client.ErrNotFound))
	}
	return b.Run, nil
}

// observe is what a member sees of its run. What it sees is read once for all of them, who change nothing of it.
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
func (w *Network) Chain() *client.Client { return w.ledger.queries }

// Now is the virtual time since the start.
func (w *Network) Now() time.Duration { return w.clock.now }

// Height of the latest block.
func (w *Network) Height() int64 { return w.ledger.height }

// Machine of a party.
func (w *Network) Machine(name string) Machine {
	p := w.at[address(name)]
	return Machine{Link: p.link, Unit: p.unit}
}

// Usage of a party so far.
func (w *Network) Usage(name string) Usage { return w.at[address(name)].usage }

// ID is the account of a party.
func (w *Network) ID(name string) string { return w.at[address(name)].key.Address() }

// Play lets time pass until the run is over, and returns the digest of everything that happened.
func (w *Network) Play() (canon.Digest, error) {
	for !w.over && w.broken == nil && w.clock.step() {
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
	if err != nil && !errors.Is(err, errKilled) {
		w.fail(err)
	}
}

// trace records that something happened.
func (w *Network) trace(what ...any) {
	line := fmt.Sprintln(append([]any{w.clock.now}, what...)...)
	w.digest.Write([]byte(line))
	if w.config.Log != nil {
		w.config.Log(line[:len(line)-1])
	}
}
