package reward

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/reward/penalty"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Without this flag a part of the drawn runs is played.
var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "play all drawn runs, as .ci/run does")

var rewrite = flag.Bool("rewrite", false, "rewrite the transcripts under testdata")

func job(id string, units, rounds uint32, verifiers uint32, auditPPM uint32) market.Order {
	return market.Order{
		ID: id, Consumer: "carol", Budget: 10_000_000, PriceCap: 5000, Verifiers: verifiers,
		Workers: market.Workers{Min: 1, Target: 16, Max: 16},
		Terms: terms.Terms{
			Job: id, Spec: digest("spec"), SpecCID: "bafyspec",
			Genesis: terms.Checkpoint{Root: digest("genesis"), CID: "bafygenesis"},
			Rounds:  rounds, Units: units, Segments: 2, UnitFlops: 3 * cost.Flops, AuditPPM: auditPPM,
			Deadlines: terms.Deadlines{Train: 12, Audit: 12, Attest: 12, Challenge: 6}, Window: 3,
		},
	}
}

func worker(id string, p party) party {
	p.offer = market.Offer{ID: id, Role: crew.Worker, Price: 1001, Slots: 1}
	p.pace = max(p.pace, 2)
	return p
}

func verifier(id string, p party) party {
	p.offer = market.Offer{ID: id, Role: crew.Verifier, Price: 999, Slots: 1}
	p.pace = max(p.pace, 2)
	return p
}

// conserved checks the money after every transition.
func (w *world) conserved() {
	w.t.Helper()
	var total uint64
	for _, amount := range w.bank { // a sum has no order
		total += amount
	}
	var staked uint64
	for _, amount := range w.uzen {
		staked += amount
	}
	e := w.escrow
	switch {
	case !w.order.Coin.Own() && staked != stake*uint64(len(w.parties)):
		w.t.Fatalf("height %d: %d uzen exist", w.height, staked)
	case total != w.total:
		w.t.Fatalf("height %d: %d uzen exist, there were %d", w.height, total, w.total)
	case e.Budget != e.Paid+e.Fee+e.Refunded+e.Remaining():
		w.t.Fatalf("height %d: escrow %+v", w.height, e)
	case len(w.s.Open) > int(w.s.Terms.Window):
		w.t.Fatalf("height %d: %d rounds are open", w.height, len(w.s.Open))
	case w.bank[Escrow] != e.Remaining():
		w.t.Fatalf("height %d: the escrow account holds %d, %d remain", w.height, w.bank[Escrow], e.Remaining())
	}
}

// audit checks the whole story at its end.
func (w *world) audit() {
	w.t.Helper()
	sums, byReason, uzen := map[Kind]uint64{}, map[string]int{}, map[Kind]uint64{}
	var fees, restored, restitution uint64
	ended := map[Kind]int{}
	for i, r := range w.receipts {
		if r.Seq != uint64(i) || r.Job != w.order.ID || r.Reason == "" {
			w.t.Fatalf("receipt %d: %+v", i, r)
		}
		if r.Amount == 0 && r.Fix == "" && r.Kind != Refund && r.Reason != AuditMoot {
			w.t.Errorf("a zero without advice: %+v", r)
		}
		if r.Coin != w.order.Coin { // what a conviction takes of the stake in the network's own coin
			if uzen[r.Kind] += r.Amount; !r.Coin.Own() || r.Kind != Slash && r.Kind != Bounty && r.Kind != Fee {
				w.t.Errorf("a receipt in a third coin, or of pay in uzen: %+v", r)
			}
			continue
		}
		ended[r.Kind]++
		byReason[r.Reason]++
		switch {
		case r.Payer != "":
			restored += r.Amount + r.Fee
			w.restoredFees += r.Fee
		case r.Reason == Restitution:
			restitution += r.Amount
		default:
			sums[r.Kind] += r.Amount
			fees += r.Fee
		}
		if r.Kind == Slash && w.party(r.Who).honest() && !w.party(r.Who).owes() {
			w.t.Errorf("honest %s is slashed", r.Who)
		}
		if p := w.party(r.Who); r.Kind == Work && p.lies && r.Round >= p.from && r.Amount > 0 && r.Payer == "" &&
			w.order.Terms.AuditPPM == 1_000_000 {
			w.t.Errorf("liar %s is paid: %+v", r.Who, r)
		}
	}
	if sums[Work]+sums[Audit] != w.escrow.Paid || fees != w.escrow.Fee || sums[Refund] != w.escrow.Refunded ||
		w.escrow.Remaining() != 0 {
		w.t.Errorf("receipts %v with fees %d, escrow %+v", sums, fees, w.escrow)
	}
	if sums[Slash] != sums[Bounty]+sums[Fee] || sums[Bounty] > sums[Slash]/2 {
		w.t.Errorf("slashes: %v", sums)
	}
	if uzen[Slash] != uzen[Bounty]+uzen[Fee] || w.uzen[CommunityPool] != uzen[Fee] {
		w.t.Errorf("of stakes in uzen: %v, and %d in the community pool", uzen, w.uzen[CommunityPool])
	}
	if restored != restitution {
		w.t.Errorf("the convicted paid %d, and %d was paid from their stakes", restitution, restored)
	}
	if w.bank[CommunityPool] != fees+w.restoredFees+sums[Fee] {
		w.t.Errorf("the community pool has %d, receipts say %d", w.bank[CommunityPool], fees+w.restoredFees+sums[Fee])
	}
	if w.s.Phase == progress.Done {
		w.everyCommitmentPays()
	}
	drawn, attempts := 0, 0
	for _, e := range w.events {
		switch e.Kind {
		case event.AuditDrawn, event.UnitChallenged:
			drawn++
		case event.UnitAssigned:
			attempts++
		case event.UnitReassigned:
			if e.Other != "" {
				attempts++
			}
		}
	}
	if drawn != ended[Audit] || attempts != ended[Work] {
		w.t.Errorf("%d audits and challenges and %d attempts, receipts for %d and %d", drawn, attempts, ended[Audit],
			ended[Work])
	}
	for _, p := range w.parties {
		if m, _ := w.s.Member(p.offer.ID); p.honest() && !p.owes() &&
			(m.Why == reason.Verdict || m.Why == reason.FalseChallenge || m.Why == reason.WrongAttest) {
			w.t.Errorf("honest %s is out: %s", m.ID, m.Why)
		}
	}
	if w.s.Phase == progress.Done && w.order.Terms.AuditPPM == 1_000_000 && w.s.Base.Root != honestRoot(w.order.Terms) {
		w.t.Error("the final state depends on who took part")
	}
}

// everyCommitmentPays checks that honest workers were paid for all that they committed to, whatever became of the
// round.
func (w *world) everyCommitmentPays() {
	w.t.Helper()
	open := map[string]int{}
	for _, e := range w.events {
		if e.Kind == event.UnitCommitted {
			open[e.Who]++
		}
	}
	for _, r := range w.receipts {
		if r.Kind == Work && (r.Reason == Verified || r.Reason == RolledBack || r.Reason == BudgetExhausted) {
			open[r.Who]--
		}
	}
	for _, p := range w.parties {
		if id := p.offer.ID; p.honest() && !p.owes() && !p.withhold && open[id] != 0 {
			w.t.Errorf("%s committed to %d units for which it was not paid", id, open[id])
		}
	}
}

// honestRoot is the state after a run in which everybody is honest.
func honestRoot(t terms.Terms) (base [32]byte) {
	at := t.Genesis.Root
	for round := range t.Rounds {
		var updates []string
		for unit := range t.Units {
			updates = append(updates, right(at, round, unit, t.SegmentsOf(unit)).UpdateCID)
		}
		at = root(at, updates)
	}
	return at
}

// TestManyWorlds runs jobs among workers and verifiers of all kinds, at least one of each honest, and each job in two
// coins. No coin is made, lost, or paid in place of the other one.
func TestManyWorlds(t *testing.T) {
	outcomes := map[string]int{}
	worlds := 540
	if !*long {
		worlds = 100
	}
	for i := range uint64(2 * worlds) {
		seed, in := i/2, coin.Coin{}
		if i%2 == 1 {
			in = coin.Coin{Denom: "ibc/usdc", Symbol: "usdc", Exponent: 6}
		}
		t.Run(fmt.Sprint(seed, in.Name()), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			rates := []uint32{1_000_000, 1_000_000, 250_000, 20_000}
			order := job(fmt.Sprintf("job%d", seed), 1+r.Uint32N(9), 1+r.Uint32N(6), 2, rates[r.IntN(len(rates))])
			if r.IntN(8) == 0 {
				order.Budget = 60_000 + r.Uint64N(60_000)
			}
			order.Coin = in
			parties := []party{worker("w0", party{pace: 1 + r.Int64N(4)}), verifier("v0", party{pace: 1 + r.Int64N(4)}),
				verifier("v1", chance(r))}
			for i := range 2 + r.IntN(4) {
				parties = append(parties, worker(fmt.Sprint("w", i+1), chance(r)))
			}
			w := enact(t, order, parties)
			outcomes[fmt.Sprint(w.s.Phase, w.s.Why)]++
			outcomes["transitions in "+order.Coin.Name()] += w.applied
			for _, e := range w.events {
				if e.Kind == event.RolledBack {
					outcomes["rollbacks"]++
				}
			}
		})
	}
	t.Logf("ends: %v", outcomes)
	if outcomes["done"] < worlds || outcomes["rollbacks"] < worlds/5 ||
		outcomes["transitions in USDC"] < 185*worlds {
		t.Errorf("few runs come to their end, or few are rolled back: %v", outcomes)
	}
}

func chance(r *rand.Rand) party {
	p := party{pace: 1 + r.Int64N(6), watches: r.IntN(3) == 0}
	switch r.IntN(9) {
	case 0, 1:
		p.lies, p.from = true, r.Uint32N(3)
	case 2:
		p.lazy = func(round uint32) bool { return round%2 == 0 }
	case 3:
		p.diesAt = 1 + r.Int64N(60)
	case 4:
		p.withhold = true
	case 5:
		p.pace = 15 + r.Int64N(20)
	case 6:
		p.stamps = true
	}
	p.plants = r.IntN(4) == 0
	return p
}

// TestStories compares transcripts of whole runs with those under testdata.
func TestStories(t *testing.T) {
	honest := party{}
	for name, c := range map[string]struct {
		order   market.Order
		parties []party
		end     string
	}{
		"late-verdict": {job("late-verdict", 3, 4, 2, 1_000_000),
			[]party{worker("ann", honest), worker("bob", honest), worker("liz", party{lies: true, from: 1}),
				verifier("vic", party{pace: 14}), verifier("wim", party{pace: 11})}, "done"},
		"two-challengers": {job("two-challengers", 2, 2, 3, 1_000_000),
			[]party{worker("ann", honest), worker("liz", party{lies: true}),
				verifier("vic", honest), verifier("wim", party{watches: true}), verifier("xan", party{watches: true})}, "done"},
		"stamp": {job("stamp", 3, 2, 2, 1_000_000),
			[]party{worker("ann", honest), worker("bob", honest), verifier("sid", party{stamps: true}),
				verifier("vic", honest)}, "done"},
		"plant": {job("plant", 3, 2, 2, 1_000_000),
			[]party{worker("ann", party{plants: true}), worker("bob", honest), verifier("vic", honest),
				verifier("wim", honest)}, "done"},
		"plant-passed": {job("plant-passed", 3, 2, 2, 1_000_000),
			[]party{worker("ann", party{plants: true}), worker("bob", honest), verifier("sid", party{stamps: true}),
				verifier("vic", honest)}, "done"},
		"honest": {job("honest", 3, 2, 1, 50_000),
			[]party{worker("ann", honest), worker("bob", honest), worker("cem", honest), verifier("vic", honest)}, "done"},
		"liar": {job("liar", 4, 2, 2, 1_000_000),
			[]party{worker("ann", honest), worker("bob", honest), worker("liz", party{lies: true}), verifier("vic", honest),
				verifier("wim", honest)}, "done"},
		"lazy": {job("lazy", 3, 4, 1, 1_000_000), []party{worker("ann", honest), worker("bob", honest),
			worker("leo", party{lazy: func(uint32) bool { return true }}), verifier("vic", honest)}, "done"},
		"lost-verifier": {job("lost-verifier", 3, 2, 2, 1_000_000),
			[]party{worker("ann", honest), worker("bob", honest), verifier("vic", honest), verifier("lou", party{diesAt: 5})},
			"done"},
		"false-challenge": {job("false-challenge", 2, 1, 2, 1_000_000), []party{worker("ann", honest), worker("bob", honest),
			verifier("vic", honest), verifier("fay", party{lies: true})}, "done"},
		"withheld": {job("withheld", 2, 1, 1, 1_000_000),
			[]party{worker("ann", honest), worker("hal", party{withhold: true}), verifier("vic", honest)}, "done"},
		"tie": {job("tie", 2, 2, 1, 0),
			[]party{worker("ann", honest), worker("bob", party{astray: true}), worker("cem", party{astray: true}),
				verifier("vic", honest)}, "done"},
	} {
		t.Run(name, func(t *testing.T) {
			w := enact(t, c.order, c.parties)
			if end := strings.TrimSpace(fmt.Sprint(w.s.Phase, " ", w.s.Why)); end != c.end {
				t.Errorf("ends with %s, want %s", end, c.end)
			}
			golden(t, name, w.log.String())
		})
	}
}

// A verifier that seals what it has not computed loses a part of its stake, all of it to the community pool. It is not
// barred: a machine that stops after it sealed looks the same.
func TestUnopenedSealCostsStake(t *testing.T) {
	w := enact(t, job("unopened", 2, 2, 2, 1_000_000),
		[]party{worker("ann", party{}), worker("bob", party{}), verifier("sid", party{stamps: true}),
			verifier("vic", party{})})
	const lost = stake * penalty.DefaultUnopenedPPM / million
	if got := w.bank[Stake("sid")]; got != stake-lost {
		t.Errorf("it has %d of %d staked, %d are to be lost", got, uint64(stake), uint64(lost))
	}
	slashed := 0
	for _, r := range w.receipts {
		if r.Kind == Slash {
			slashed++
			if r.Who != "sid" || r.Reason != SealUnopened || r.Amount != lost || r.Jails() {
				t.Errorf("%+v", r)
			}
		}
		if r.Kind == Bounty && r.Amount > 0 {
			t.Errorf("somebody earns it: %+v", r)
		}
	}
	if slashed != 1 {
		t.Errorf("%d slashes", slashed)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *rewrite {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the transcript differs from %s (use -rewrite if that is meant); it is now:\n%s", path, got)
	}
}

func TestBudgetRunsOut(t *testing.T) {
	order := job("poor", 2, 5, 1, 1_000_000)
	round, whole := cost.Quote(order.Terms, 1001, 1)
	order.Budget = 2*round + 1
	if order.Budget >= whole {
		t.Fatal("not a small budget")
	}
	w := enact(t, order, []party{worker("ann", party{}), verifier("vic", party{})})
	if w.s.Phase != progress.Halted || w.s.Why != reason.BudgetExhausted || w.s.Round != 2 {
		t.Errorf("phase %d, %s, round %d", w.s.Phase, w.s.Why, w.s.Round)
	}
}

func TestShortEscrowPaysWhatItHolds(t *testing.T) {
	s := run.State{
		Progress: progress.Progress{
			Crew: crew.Crew{
				Terms:   terms.Terms{Job: "j", UnitFlops: cost.Flops},
				Members: []crew.Member{{ID: "v", Role: crew.Verifier, Price: 100}, {ID: "x", Role: crew.Verifier}},
			},
		},
	}
	passed := []event.Event{{Kind: event.AuditPassed, Who: "v"}, {Kind: event.AuditPassed, Who: "v"},
		{Kind: event.AuditPassed, Who: "x"}}
	got := Settle(s, passed, SettlementInput{Escrow: market.Escrow{Budget: 140}, FeePPM: market.FeePPM, Seq: 7})
	want := []string{
		"v receives 0.000095 ZEN for the audit of unit 0 of round 1 because the work is verified.",
		"v receives 0.000038 ZEN for the audit of unit 0 of round 1 because the budget of the job is exhausted. To do: " +
			"raise the budget of the job and resume it.",
		"x receives 0.00 ZEN for the audit of unit 0 of round 1 because the work is verified, but its price is less " +
			"than one uzen. To do: ask a higher price.",
	}
	for i, r := range got.Receipts {
		if Explain(r) != want[i] || r.Seq != 7+uint64(i) {
			t.Errorf("%d: %s", r.Seq, Explain(r))
		}
	}
	if got.Escrow.Remaining() != 0 || len(got.Transfers) != 4 || got.Seq != 10 {
		t.Errorf("%+v", got)
	}
}

func TestEveryReasonIsExplained(t *testing.T) {
	for reason := range fixes {
		if because[reason] == "" {
			t.Errorf("%s has advice but no sentence", reason)
		}
	}
	for reason, sentence := range because {
		if strings.HasSuffix(sentence, ".") || strings.HasSuffix(fixes[reason], ".") {
			t.Errorf("%s: a full stop too many", reason)
		}
	}
	if got := Explain(Receipt{Kind: Work, Who: "a", Reason: "other"}); !strings.Contains(got, "because of other") {
		t.Error(got)
	}
}

// A worker that is silent in a dispute loses stake, and the accuser gets neither a part of it nor its audit: nothing
// was shown, and accusing an offline worker must not pay.
func TestSilenceEarnsNothing(t *testing.T) {
	o := job("job", 1, 1, 1, 1_000_000)
	s, err := run.New(o.Terms, []crew.Member{{ID: "w", Role: crew.Worker, Price: 1001},
		{ID: "v", Role: crew.Verifier, Price: 999}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for why, bounty := range map[string]uint64{reason.WrongWork: 250, reason.Silent: 0} {
		ended := event.Event{Kind: event.DisputeEnded, Who: "v", Other: "w", Why: why}
		after := Settle(s, []event.Event{ended}, SettlementInput{
			Escrow: market.Escrow{Budget: 10_000_000}, Penalty: penalty.Default(), Stake: func(string) uint64 { return 1000 },
		})
		got := map[Kind]uint64{}
		for _, r := range after.Receipts {
			got[r.Kind] += r.Amount
			if r.Kind == Slash && (because[r.Reason] == "" || r.Fix == "") {
				t.Errorf("%s: nothing explains %+v", why, r)
			}
		}
		if got[Slash] != 500 || got[Bounty] != bounty || got[Fee] != 500-bounty ||
			(got[Audit] == 0) != (why == reason.Silent) {
			t.Errorf("%s: %v", why, got)
		}
	}
}

// The receipts of a verdict name it, also one by silence, whose unit has a reason of its own.
func TestReceiptsOfADispute(t *testing.T) {
	for _, reason := range []string{FaultFound, NothingShown, WrongWork, Silent, FalseChallenge} {
		if !(Receipt{Kind: Work, Reason: reason}).OfDispute() {
			t.Errorf("%s comes of no dispute", reason)
		}
	}
	if (Receipt{Kind: Work, Reason: Verified}).OfDispute() || !(Receipt{Kind: Bounty, Reason: WrongWork}).OfDispute() {
		t.Error("verified work, or a bounty")
	}
}

// Units of different sizes are paid by their operations: a run without a fault, in which every unit is audited once,
// costs exactly its quote, also where prices do not divide.
func TestUnitsOfDifferentSizesArePaidAsQuoted(t *testing.T) {
	o := job("paces", 4, 3, 1, 1_000_000)
	o.Terms.Segments, o.Terms.UnitFlops, o.Terms.Sizes = 7, 7*(cost.Flops/11), []uint32{3, 7, 1, 5}
	w := enact(t, o, []party{
		worker("w0", party{}), worker("w1", party{pace: 3}), worker("w2", party{pace: 5}), worker("w3", party{pace: 8}),
		verifier("v0", party{}),
	})
	if w.s.Phase != progress.Done {
		t.Fatalf("phase %d: %s", w.s.Phase, w.s.Why)
	}
	_, work := cost.Quote(o.Terms, 1001, 0)
	_, audits := cost.Quote(o.Terms, 999, 0)
	if got, want := w.escrow.Paid+w.escrow.Fee, work+audits; got != want {
		t.Errorf("paid %d, quoted %d", got, want)
	}
	for _, r := range w.receipts {
		if (r.Kind == Work || r.Kind == Audit) && r.Flops != o.Terms.FlopsOf(r.Unit) {
			t.Errorf("unit %d of %d operations: %+v", r.Unit, o.Terms.FlopsOf(r.Unit), r)
		}
	}
}

// An audit to a drawn segment is paid by the share of the unit that it executes, whatever its size.
func TestPartOfAnAuditOfASize(t *testing.T) {
	terms := terms.Terms{Units: 2, Segments: 4, UnitFlops: 4000, Sizes: []uint32{4, 3}}
	for _, c := range []struct {
		unit, segment uint32
		want          uint64
	}{{0, 0, 4000}, {0, 3, 3000}, {1, 0, 3000}, {1, 1, 1000}, {1, 2, 2000}, {1, 3, 3000}} {
		if got := audited(terms, c.unit, c.segment); got != c.want {
			t.Errorf("unit %d to segment %d: %d operations, want %d", c.unit, c.segment, got, c.want)
		}
	}
}
