package sim

import (
	"strconv"
	"time"

	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"

	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/workload"
)

// Config is a network to play.
type Config struct {
	Seed       uint64
	Job        *workload.Job
	Workers    int
	Verifiers  int
	Most       int // workers at a time, if more than Workers
	Generators int // of the workers, the last: they offer to draw answers alone
	Validators int
	Slices     uint32          // in which a round is reduced; 0: everybody combines all updates
	AuditPPM   uint32          // floor of the audit rate, parts per million
	Drawn      bool            // audits go to the end of a drawn segment
	Tolerance  terms.Tolerance // zero: the work is exact
	BlockTime  time.Duration
	// blocks that a duty may take before anything is measured; 0: as long as in a job on a network
	Deadline  int64
	Link      link.Link          // of everybody
	ByteScale ByteScale          // of the blobs that go over it
	Unit      time.Duration      // that a unit takes; up to as much again is drawn for every machine
	Combine   time.Duration      // that a member takes to make the next checkpoint of the updates of a round
	Machines  map[string]Machine // by name, of those for whom the two lines before do not hold
	Order     *market.Order      // of the consumer, but for the names of blobs; nil: one for all workers and verifiers
	OrderAt   time.Duration      // from the start of the world, when the consumer orders
	Acts      map[string]adversary.Attack
	Withhold  []int   // validators that keep their part of the beacon back
	Faults    []Fault // of machines and links
	Joins     []Newcomer
	Leaves    map[string]time.Duration // who drains from when on
	Pauses    []Pause
	Registers bool              // heartbeats are sent, machines measured and peers reported
	MaxBlocks int64             // after which the run counts as stuck
	Log       func(line string) // nil: nowhere
	Database  dbm.DB            // of the chain; nil: in memory, where it grows with every block
	Forgets   bool              // blobs are deleted once they belong to rounds that are final, as a full disk makes room

	Genesis func(*cmttypes.GenesisDoc) error // changes that of the chain; nil: it is not changed
}

// Machine is what a party works with, and how it offers it.
type Machine struct {
	Link     link.Link
	Unit     time.Duration     // that a unit takes
	Draw     time.Duration     // that a unit takes which draws answers; 0: as its operations
	Rate     uint64            // operations a second, which the registry measures; 0: it does not
	Hardware registry.Hardware // as it declares it
	Tier     registry.Tier     // of uptime, which it commits to
	Price    uint64            // 0: that of everybody
	Place    string            // where it stands, whatever it declares
}

// Usage is what a party has done so far.
type Usage struct {
	Sent, Received uint64        // bytes of blobs, but for those from the consumer
	Far            uint64        // bytes of Received from machines in other places
	Job            uint64        // bytes from the consumer: the job and its first checkpoint
	Worked         time.Duration // at units, its own and those that it audits
	Steps          uint64        // inner steps of these, also of those that it was stopped at
}

// Fault is something that breaks and is mended.
type Fault struct {
	At, For time.Duration // from the start of the world, or from the call of Inject
	Who     string        // crashes and restarts; or, with From, cannot reach From and is not reached by it
	From    string        // another party, or Chain
}

// Pause is a time in which the owner of a machine uses it: the party sets its work aside.
type Pause struct {
	At, For time.Duration // from the start of the world
	Who     string
	Known   bool // the party knows when it ends
}

// Chain stands for the validators in a Fault: who cannot reach them learns of no block, and what it sends waits.
const Chain = "chain"

// Newcomer is a machine that is switched on during the run, and offers its work.
type Newcomer struct {
	Name string
	Role crew.Role // class of work that it offers
	At   time.Duration

	Earns bool // it has no coins, and earns its stake
}

// Money of the parties, in uzen, in addition to the sums that the order asks for.
const (
	Funds  = 1_000_000_000_000
	stake  = 100_000_000
	price  = 1_000_000_000
	budget = 500_000_000_000
)

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

// Terms of the order: those of a job on a network, but for deadlines that a test sets.
func (c Config) Terms() terms.Terms {
	j := c.Job
	t := bundle.Terms(j.ID(), j.Task.Spec, parts.Flops(j.Task.Step), bundle.Checks{
		AuditPPM: c.AuditPPM, Drawn: c.Drawn, Screen: terms.ScreenUpdates, Tolerance: c.Tolerance, Slices: c.Slices})
	t.Rollout = referee.Rollout(j.Task.Spec, j.Task.Step)
	if d := c.Deadline; d > 0 {
		t.Deadlines = terms.Deadlines{Train: d, Audit: d, Attest: d, Challenge: 30}
	}
	return t
}

// Seating gives the given number of verifiers a seat in the run. The others belong to the network: the beacon draws
// audits for them, too.
func (c Config) Seating(verifiers int) Config {
	o := c.order()
	o.Verifiers = uint32(verifiers)
	c.Order = &o
	return c
}

// Usual are the terms of a job on a network whose file says nothing of verification. Deadlines take blocks of a second.
func (c Config) Usual() Config {
	v := spec.Default().Strategy.Verification.Checks()
	c.AuditPPM, c.Drawn, c.BlockTime, c.Deadline = v.AuditPPM, v.Drawn, time.Second, 0
	return c
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
		Terms: c.Terms(), Generators: uint32(c.Generators)}
}

// Away are those who are switched off or cut off for longer than a move in a dispute may take: who accuses them
// falsely, or challenges a fault that they planted, wins by their silence. It is no more than the rules promise to
// parties that stay reachable.
func (c Config) Away() (names []string) {
	for _, f := range c.Faults {
		if f.For >= 20*time.Second {
			names = append(names, f.Who)
		}
	}
	return names
}
