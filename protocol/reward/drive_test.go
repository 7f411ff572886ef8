package reward

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward/penalty"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// party is how a member behaves. The zero value, with a pace, is honest.
type party struct {
	offer    market.Offer
	pace     int64                   // blocks for a unit or an audit
	lies     bool                    // worker: commits to work it has not done; verifier: challenges everything
	from     uint32                  // round from which it lies
	watches  bool                    // verifier: challenges wrong work that was not drawn for it
	lazy     func(round uint32) bool // does not answer in these rounds
	diesAt   int64                   // height; 0: never
	middle   bool                    // worker: lies in one root in the middle of a unit alone, whose update is right
	withhold bool                    // does not serve its updates
	astray   bool                    // attests another checkpoint
	stamps   bool                    // verifier: passes whatever is wrong, under a seal that it made up
	plants   bool                    // worker: plants a fault whenever it may
	// worker: of tolerant work it does not train these units, from the round that from says
	fakes   func(unit uint32) bool
	shields string // verifier: finds all work of this worker within
}

func (p party) honest() bool { return p.fakes == nil && !p.lies && !p.middle && !p.astray && !p.stamps }

// owes reports whether a party dies, and may then owe what only it can show: a planted fault, or what it sealed.
func (p party) owes() bool { return p.diesAt > 0 && (p.plants || p.offer.Role == crew.Verifier) }

// world is a network in memory: the bank, one job, its members. It is what the chain and the nodes are to protocol/.
type world struct {
	t        *testing.T
	order    market.Order
	parties  []party
	s        run.State
	escrow   market.Escrow
	seq      uint64
	height   int64
	bank     map[string]uint64 // in the coin of the order
	uzen     map[string]uint64 // of an order in another coin: the stakes in the network's own
	total    uint64
	disputes []pending
	events   []event.Event
	receipts []Receipt
	results  map[place]work.Commitment // right ones: everybody asks for them in every block
	log      bytes.Buffer

	applied      int    // transitions, after each of which the coins are counted
	restoredFees uint64 // on payments from stakes of the convicted
}

// place identifies the result of a unit.
type place struct {
	base        canon.Digest
	round, unit uint32
}

// pending is an open dispute, which the referee decides at a height.
type pending struct {
	round, unit, attempt uint32
	at                   int64
}

const stake = 1_000_000

func digest(parts ...any) canon.Digest { return canon.Sum("world", []byte(fmt.Sprint(parts...))) }

func enact(t *testing.T, order market.Order, parties []party) *world {
	t.Helper()
	w := &world{t: t, order: order, parties: parties, height: 1, bank: map[string]uint64{}, uzen: map[string]uint64{},
		results: map[place]work.Commitment{}}
	slices.SortFunc(w.parties, func(a, b party) int { return cmp.Compare(a.offer.ID, b.offer.ID) })
	w.bank[order.Consumer] = order.Budget
	var offers []market.Listing
	for _, p := range parties {
		offers = append(offers, market.Listing{Offer: p.offer, Profile: market.Profile{Cover: 1 << 63},
			Denom: order.Coin.Denom})
		w.bank[purse{p.offer.ID, order.Coin}.account()] = stake
		if !order.Coin.Own() {
			w.uzen[Stake(p.offer.ID)] = stake
		}
	}
	w.total = order.Budget + stake*uint64(len(parties))
	lease, reason := market.NewBook(offers, w.env().Beacon).Match(order)
	if reason != market.Matched {
		t.Fatalf("not matched: %s", reason)
	}
	w.move(order.Consumer, Escrow, order.Budget)
	w.escrow = market.Escrow{Budget: order.Budget}
	s, err := run.New(order.Terms, lease.Members, w.height)
	if err != nil {
		t.Fatal(err)
	}
	w.s = s
	for w.height++; w.s.Phase != progress.Done && w.s.Phase != progress.Halted; w.height++ {
		if w.height > 20_000 {
			t.Fatalf("no end in sight: phase %d of round %d", w.s.Phase, w.s.Round)
		}
		w.block()
	}
	w.audit()
	return w
}

func (w *world) env() transition.Env {
	return transition.Env{Height: w.height, Beacon: digest("beacon", w.order.ID, w.height),
		Covers: func(p progress.Progress) func(unit uint32, price uint64, spared bool) bool {
			return cost.Covers(run.State{Progress: p}, w.escrow.Remaining())
		}}
}

// block plays the messages of all parties, then Tick.
func (w *world) block() {
	for _, p := range w.parties {
		if p.diesAt > 0 && w.height >= p.diesAt {
			continue
		}
		w.unmask(p) // also a party that is out owes these
		w.open(p)
		if m, ok := w.s.Member(p.offer.ID); !ok || !m.Active {
			continue
		}
		if p.offer.Role == crew.Worker {
			w.train(p)
		} else {
			w.check(p)
		}
		if m, _ := w.s.Member(p.offer.ID); !m.Active { // what it said was found wrong at once
			continue
		}
		w.report(p)
		w.attest(p)
	}
	w.judge()
	w.refute()
	env := w.env()
	env.BudgetExhausted = w.escrow.Remaining() < cost.Exposure(w.s)
	s, events := w.s.Tick(env)
	w.apply(s, events, nil)
}

// ready reports whether a party had the time for a duty.
func (w *world) ready(p party, u work.Unit) bool {
	return w.height-u.AssignedAt >= p.pace && (p.lazy == nil || !p.lazy(w.s.Round))
}

func (w *world) train(p party) {
	duties := w.s.Work(p.offer.ID)
	if len(duties) == 0 || !w.ready(p, duties[0]) {
		return
	}
	u, c := duties[0], w.right(w.s.RoundState, duties[0].Index)
	if p.middle && w.s.Round >= p.from {
		c.Segments = slices.Clone(c.Segments)
		c.Segments[1] = digest("wrong", w.s.Round, u.Index)
	}
	if p.lies && w.s.Round >= p.from {
		c.Update = digest("fabricated", w.s.Round, u.Index)
		c.UpdateCID = "bafy" + c.Update.Short()
		if w.s.Terms.Carries(w.s.Round) {
			c.HandedState = carried(c)
		}
	}
	if p.fakes != nil && w.s.Round >= p.from && w.s.Tolerant(u) && p.fakes(u.Index) {
		c.Update = digest("rescaled", w.s.Round, u.Index)
		c.UpdateCID = "bafy" + c.Update.Short()
	}
	if p.plants && w.mayPlant(p.offer.ID) {
		c.Segments = audit.Plant(nonce(w.s.Round, u.Index), c.Segments)
	}
	w.apply(w.s.Commit(w.env(), p.offer.ID, work.UnitID{Unit: u.Index, Round: w.s.Round, Attempt: u.Attempt}, c))
}

// measure says how far tolerant work is off.
func (w *world) measure(p party) {
	for i := range w.s.Units {
		u := *w.s.Units[i]
		right := w.right(w.s.RoundState, u.Index)
		f := audit.Finding{DistancePPM: 1000 + u.Index, CosinePPM: 999_000, End: right.Segments[len(right.Segments)-1]}
		if u.Commit.Update != right.Update && p.shields != u.Worker {
			f.DistancePPM, f.CosinePPM = 1_100_000, 0
		}
		salt := digest("salt", p.offer.ID)
		switch id := p.offer.ID; {
		case u.OwesReport(id):
			seal, outside := f.Seal(u.ID(w.s.Round).Subject(id, w.s.Terms.Job, 0), salt), f.CosinePPM == 0
			w.apply(w.s.Report(w.env(), id, u.ID(w.s.Round), seal, outside))
		case u.OwesFigures(id):
			w.apply(w.s.ShowReport(w.env(), id, u.ID(w.s.Round), f, salt))
		}
	}
}

func (w *world) check(p party) {
	if p.watches {
		w.watch(p)
	}
	if w.measure(p); !slices.Contains(w.s.Active(crew.Verifier), p.offer.ID) {
		return
	}
	duties := slices.DeleteFunc(w.s.Audits(p.offer.ID), func(d work.AuditTarget) bool { return w.s.Tolerant(d.Unit) })
	if len(duties) == 0 || !w.ready(p, duties[0].Unit) {
		return
	}
	d := duties[0]
	if w.isRight(d) && !p.stamps && !(p.lies && d.Round >= p.from) {
		w.apply(w.s.Pass(w.env(), p.offer.ID, d.ID(), w.seal(d).Root()))
		return
	}
	if p.stamps { // it has computed nothing
		w.apply(w.s.Pass(w.env(), p.offer.ID, d.ID(), digest("stamp", d.Round, d.Index)))
		return
	}
	w.challenge(p, d)
}

// watch challenges the first wrong unit that is not drawn for this verifier.
func (w *world) watch(p party) {
	for _, l := range w.s.All() {
		for _, u := range l.Units {
			d := work.AuditTarget{RoundState: l, Unit: *u}
			open := u.Status == work.Accepted || u.Status == work.Auditing && u.Verifier != p.offer.ID ||
				u.Status == work.Disputed
			if open && !w.s.Forfeited(d) && !w.isRight(d) && !slices.Contains(u.Challengers, p.offer.ID) {
				w.challenge(p, d)
				return
			}
		}
	}
}

func (w *world) challenge(p party, d work.AuditTarget) {
	w.apply(w.s.Challenge(w.env(), p.offer.ID, d.ID()))
	w.disputes = append(w.disputes, pending{d.Round, d.Index, d.Attempt, w.height + 4})
}

func (w *world) isRight(d work.AuditTarget) bool {
	right := w.right(d.RoundState, d.Index)
	return d.Commit.Update == right.Update && slices.Equal(d.Commit.Segments, right.Segments)
}

// open opens the seals of a verifier, unless it has made them up.
func (w *world) open(p party) {
	for _, l := range w.s.All() {
		for _, u := range l.Units {
			d := work.AuditTarget{RoundState: l, Unit: *u}
			if u.Status != work.Sealed || u.Verifier != p.offer.ID || u.Question.IsZero() || u.Seal != w.seal(d).Root() {
				continue
			}
			o, err := w.seal(d).Open(u.Question, end{})
			if err != nil {
				w.t.Fatal(err)
			}
			w.apply(w.s.Unseal(w.env(), p.offer.ID, d.ID(), o, end{u.Commit.Segments[len(u.Commit.Segments)-1]}))
		}
	}
}

func (w *world) seal(d work.AuditTarget) *audit.Seal {
	return audit.NewSeal(w.s.Subject(d.Round, d.Unit), []*canon.Tree{canon.NewTree(canon.Leaves([][]byte{tile}))})
}

// end is the state at the end of every unit, and the rooting under which it has the committed root.
type end struct{ root canon.Digest }

var tile = []byte("tile")

func (end) Roots() []canon.Digest {
	return []canon.Digest{canon.NewTree(canon.Leaves([][]byte{tile})).Root()}
}
func (end) Shape(int) []byte                                                { return nil }
func (end) Tile(int, int) []byte                                            { return tile }
func (end) Step() uint32                                                    { return 0 }
func (end) Tensor(_ []byte, _ int, tree canon.Digest) (canon.Digest, error) { return tree, nil }
func (e end) State(uint32, canon.Digest) canon.Digest                       { return e.root }

// nonce hides the state roots of every worker.
func nonce(round, unit uint32) canon.Digest { return digest("nonce", round, unit) }

// unmask shows the faults that a worker planted, when they are answered.
func (w *world) unmask(p party) {
	for _, l := range w.s.All() {
		for _, u := range l.Units {
			if u.Worker != p.offer.ID || p.middle {
				continue
			}
			answered := u.Status == work.Sealed || u.Status == work.Accepted || u.Status == work.Disputed
			right := w.right(l, u.Index)
			if answered && u.Commit.HiddenRoots == right.HiddenRoots && u.Commit.Update == right.Update &&
				!slices.Equal(u.Commit.Segments, right.Segments) {
				w.apply(w.s.RevealPlantedFault(w.env(), p.offer.ID, u.ID(l.Round), nonce(l.Round, u.Index), right.Segments))
			}
		}
	}
}

// mayPlant reports whether a worker may plant another fault, when all that it has planted are shown.
func (w *world) mayPlant(id string) bool {
	m, _ := w.s.Member(id)
	planted := m.Planted
	for _, l := range w.s.All() {
		for _, u := range l.Units {
			if u.Worker == id && len(u.Commit.Segments) > 0 && !slices.Equal(u.Commit.Segments, w.right(l, u.Index).Segments) {
				planted++
			}
		}
	}
	return planted < audit.MayPlant(m.Commits)
}

func (w *world) report(p party) {
	if w.s.Phase != progress.Attest {
		return
	}
	for _, u := range w.s.Units {
		if u.Worker == p.offer.ID || u.Status == work.Disputed || slices.Contains(u.Missing, p.offer.ID) {
			continue
		}
		if of := w.party(u.Worker); of.withhold && (of.fakes == nil || u.Audited && of.fakes(u.Index) && w.s.Tolerant(*u)) {
			w.apply(w.s.Missing(w.env(), p.offer.ID, u.ID(w.s.Round), 0))
			return
		}
	}
}

func (w *world) attest(p party) {
	lacks := func(u *work.Unit) bool { return slices.Contains(u.Missing, p.offer.ID) }
	if w.s.Phase != progress.Attest || !w.s.Attestable() || w.s.Voted(p.offer.ID) ||
		slices.ContainsFunc(w.s.Units, lacks) {
		return
	}
	next := terms.Checkpoint{Round: w.s.Round + 1}
	next.Root = root(w.s.Base.Root, w.s.Attestation(next).Updates)
	if p.astray {
		next.Root = digest("astray")
	}
	next.CID = "bafy" + next.Root.Short()
	w.apply(w.s.Attest(w.env(), w.s.Round, progress.Vote{Member: p.offer.ID, Next: next}))
}

// refute shows that a checkpoint is wrong, as the first honest party does that finds another.
func (w *world) refute() {
	if w.s.Base.Root != digest("astray") || w.s.Over() {
		return
	}
	at := slices.IndexFunc(w.parties, party.honest)
	for _, e := range slices.Backward(w.events) {
		if e.Kind == event.RoundAttested && e.Entry.Attestation.Checkpoint == w.s.Base {
			w.apply(w.s.Refute(w.env(), w.parties[at].offer.ID, *e.Entry))
			return
		}
	}
}

// judge is the referee: it knows what is right.
func (w *world) judge() {
	open := w.disputes
	w.disputes = nil
	for _, d := range open {
		if d.at > w.height || w.s.Phase == progress.Halted {
			w.disputes = append(w.disputes, d)
			continue
		}
		u, ok := w.s.Find(work.UnitID{Round: d.round, Unit: d.unit, Attempt: d.attempt})
		if !ok || len(u.Challengers) == 0 {
			continue // moot
		}
		lies, loser := !w.isRight(u), u.Challengers[0]
		if lies {
			loser = u.Worker
		}
		w.apply(w.s.Verdict(w.env(), work.UnitID{Round: d.round, Unit: d.unit, Attempt: d.attempt}, lies, false, loser))
	}
}

// apply takes a transition over, and executes what it costs.
func (w *world) apply(s run.State, events []event.Event, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("height %d: %v", w.height, err)
	}
	book := SettlementInput{Consumer: w.order.Consumer, Escrow: w.escrow, Penalty: penalty.Default(),
		Least: registry.DefaultParams().MinStake, FeePPM: market.FeePPM, Height: w.height, Seq: w.seq,
		Coin: w.order.Coin, Stake: func(id string) uint64 { return w.of(Stake(id))[Stake(id)] },
		CoinStake: func(id string) uint64 { return w.bank[CoinStake(id)] }}
	settled := Settle(s, events, book)
	for _, e := range events {
		alone := Settle(s, []event.Event{e}, book)
		if idle := alone.Receipts == nil && alone.Transfers == nil && alone.Escrow == book.Escrow &&
			alone.Seq == book.Seq; !Settles(e) && !idle {
			w.t.Fatalf("%s books %+v, and is not said to", e.Kind, alone)
		}
	}
	for _, t := range settled.Transfers {
		w.move(t.From, t.To, t.Amount)
	}
	w.tell(s, events, settled.Receipts)
	w.applied++
	w.s, w.escrow, w.seq = s, settled.Escrow, settled.Seq
	w.events = append(w.events, events...)
	w.receipts = append(w.receipts, settled.Receipts...)
	w.conserved()
}

func (w *world) move(from, to string, amount uint64) {
	w.t.Helper()
	bank := w.of(from)
	if amount == 0 || bank[from] < amount {
		w.t.Fatalf("height %d: %d from %s, which has %d", w.height, amount, from, bank[from])
	}
	bank[from] -= amount
	bank[to] += amount
}

// of is the bank of the coin that an account holds, from which a transfer is made.
func (w *world) of(from string) map[string]uint64 {
	if !w.order.Coin.Own() && strings.HasPrefix(from, Stake("")) {
		return w.uzen
	}
	return w.bank
}

// tell writes the transcript.
func (w *world) tell(s run.State, events []event.Event, receipts []Receipt) {
	for _, e := range events {
		fmt.Fprintf(&w.log, "%d %s round %d", w.height, e.Kind, e.Round)
		switch e.Kind {
		case event.RoundAttested:
			fmt.Fprintf(&w.log, " root %s by %d votes", e.Entry.Attestation.Checkpoint.Root.Short(), len(e.Entry.Votes))
		case event.MemberLeft, event.RoundDropped, event.RoundFinal, event.RunDone, event.RunHalted:
		default:
			fmt.Fprintf(&w.log, " unit %d", e.Unit)
		}
		for _, word := range []string{e.Who, e.Other, e.Why} {
			if word != "" {
				fmt.Fprintf(&w.log, " %s", word)
			}
		}
		w.log.WriteByte('\n')
	}
	for _, r := range receipts {
		fmt.Fprintf(&w.log, "    #%d %s\n", r.Seq, Explain(r))
	}
	if s.Phase != w.s.Phase {
		fmt.Fprintf(&w.log, "%d -- phase %d\n", w.height, s.Phase)
	}
}

func (w *world) right(l work.RoundState, unit uint32) work.Commitment {
	at := place{l.Base.Root, l.Round, unit}
	c, known := w.results[at]
	if !known {
		c = right(at.base, at.round, at.unit, w.s.Terms.SegmentsOf(at.unit))
		w.results[at] = c
	}
	c.Segments = slices.Clone(c.Segments)
	if w.s.Terms.Carries(l.Round) {
		c.HandedState = carried(c)
	}
	return c
}

// carried is the carried state of a unit with the update of a commitment.
func carried(c work.Commitment) work.HandedState {
	return work.HandedState{Root: digest("carried", c.Update), CID: "bafycarried"}
}

// right is the one result of a unit: it depends on base, round and index alone.
func right(base canon.Digest, round, unit, segments uint32) work.Commitment {
	c := work.Commitment{Update: digest("update", base, round, unit), Bytes: 1}
	c.UpdateCID = "bafy" + c.Update.Short()
	for i := range segments + 1 {
		c.Segments = append(c.Segments, digest("segment", base, round, unit, i))
	}
	c.HiddenRoots = audit.Hide(nonce(round, unit), c.Segments)
	return c
}

func root(base canon.Digest, updates []string) canon.Digest { return digest("root", base, updates) }

func (w *world) party(id string) party {
	for _, p := range w.parties {
		if p.offer.ID == id {
			return p
		}
	}
	return party{}
}
