package fault

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/chain/x/beacon/censorship"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
)

// judge plays a job on the default terms in which some members break the rules, and checks the outcome.
func (n *network) judge(name string, rounds int, liars []liar) {
	n.t.Helper()
	if !n.second.running() {
		n.second.start(0)
		n.second.ready()
	}
	begun := time.Now()
	j := n.submit(name, rounds)
	j.usual()
	j.consumer.succeeds()
	var summary struct {
		Rounds    int    `json:"rounds"`
		StateRoot string `json:"state_root"`
	}
	if err := json.Unmarshal(j.consumer.stdout.Bytes(), &summary); err != nil {
		j.t.Fatalf("%v: %s", err, j.consumer.stdout.Bytes())
	}
	j.check(func() error { return j.model(summary.StateRoot) })
	receipts, err := j.chain.Training.Receipts(j.t.Context(), j.id)
	if err != nil {
		j.t.Fatal(err)
	}
	j.sentence(liars, receipts)
	j.books(receipts)
	if s := j.run(j.id); s.Phase != progress.Done {
		j.t.Errorf("the run ends in phase %s: %s", s.Phase, s.Why)
	}
	j.t.Logf("%.0f s for %d rounds, state root %s; %s", time.Since(begun).Seconds(), rounds, summary.StateRoot, j.pace())
}

// usual checks that the terms of the job are the default terms, except for the size of its work and its slices.
func (j *job) usual() {
	j.t.Helper()
	got := j.run(j.id).Terms
	work := &train.Spec{Rounds: got.Rounds, Steps: steps, Segment: steps / got.Segments, Units: got.Units}
	work.Exchange.Carry = 8 // the moments of AdamW last
	want := bundle.Terms(j.id, work, 0, bundle.Checks{AuditPPM: 100_000, Screen: terms.ScreenUpdates, Slices: got.Slices})
	want.Spec, want.SpecCID, want.Genesis, want.UnitFlops = got.Spec, got.SpecCID, got.Genesis, got.UnitFlops
	if !reflect.DeepEqual(got, want) {
		j.t.Errorf("the terms of the job are\n%+v\nand by default\n%+v", got, want)
	}
	if slices.ContainsFunc(j.settings, func(s string) bool { return strings.HasPrefix(s, "strategy.verification") }) {
		j.t.Errorf("the job is checked in another way than by default: %v", j.settings)
	}
}

// verdict waits for the end of the job, checks its model and the sentences of the liars, and returns the receipts.
func (j *job) verdict(liars []liar) []reward.Receipt {
	j.t.Helper()
	j.consumer.succeeds()
	roots, err := lineage(j.out)
	if err != nil || len(roots) != j.rounds {
		j.t.Fatalf("%d rounds, %v", len(roots), err)
	}
	j.check(func() error { return j.model(roots[j.rounds-1]) })
	receipts, err := j.chain.Training.Receipts(j.t.Context(), j.id)
	if err != nil {
		j.t.Fatal(err)
	}
	j.sentence(liars, receipts)
	return receipts
}

// sentence checks which accounts lose stake, which have to leave, and that no party gains by breaking the rules:
// neither one alone nor a circle.
func (j *job) sentence(liars []liar, receipts []reward.Receipt) {
	j.t.Helper()
	participants, err := j.chain.Registry.Participants(j.t.Context())
	if err != nil {
		j.t.Fatal(err)
	}
	state, answered := j.run(j.id), j.answered()
	gain := map[string]int64{}                               // by the folder of a circle
	own := func(bounty reward.Receipt, circle string) bool { // a bounty for a member of its own circle
		return slices.ContainsFunc(receipts, func(r reward.Receipt) bool {
			same := r.Height == bounty.Height && r.Round == bounty.Round && r.Unit == bounty.Unit
			return same && r.Kind == reward.Slash && circleOf(liars, r.Who) == circle
		})
	}
	for _, p := range participants {
		var worked, bounties uint64
		for _, r := range receipts {
			switch {
			case r.Who == p.ID && (r.Kind == reward.Work || r.Kind == reward.Audit):
				worked += r.Amount
			case r.Who == p.ID && r.Kind == reward.Bounty:
				bounties += r.Amount
			}
		}
		at := slices.IndexFunc(liars, func(l liar) bool { return l.address == p.ID })
		if at < 0 {
			if p.Slashed > 0 || p.Jailed {
				j.t.Errorf("%s kept the rules, and lost %d uzen of its stake", p.ID, p.Slashed)
			}
			m, _ := state.Member(p.ID)
			// A member that is out meanwhile is paid for its work, too. Audits that others made needless are not.
			did := m.Why != reason.Unopened && slices.ContainsFunc(receipts, func(r reward.Receipt) bool {
				return r.Who == p.ID && (r.Kind == reward.Work || r.Kind == reward.Audit) && r.Reason != reward.AuditMoot
			})
			if worked == 0 && (did || m.Active && m.Role == crew.Worker) {
				j.t.Errorf("%s kept the rules, and is paid nothing: out %q", p.ID, m.Why)
			}
			continue
		}
		l := liars[at]
		m, _ := state.Member(p.ID)
		j.t.Logf("%s: out: %q, slashed %d uzen, earned %d and bounties of %d", l.act, m.Why, p.Slashed, worked, bounties)
		if l.role == "verifier" && !answered[p.ID] { // it was not asked, or was out before it answered
			j.t.Logf("%s answered no audit", l.act)
		} else if (p.Slashed > 0) != l.slashed {
			j.t.Errorf("%s lost %d uzen of its stake", l.act, p.Slashed)
		}
		if l.out && m.Active {
			j.t.Errorf("%s has a seat still", l.act)
		}
		if l.slashed && worked+bounties > p.Slashed {
			j.t.Errorf("%s gained: it earned %d uzen, and lost %d", l.act, worked+bounties, p.Slashed)
		}
		if len(l.more) > 0 {
			circle := circleOf(liars, p.ID)
			if l.role == "worker" { // a verifier makes the audits that it is paid for
				gain[circle] += int64(worked)
			}
			for _, r := range receipts {
				if r.Who == p.ID && r.Kind == reward.Bounty && own(r, circle) {
					gain[circle] += int64(r.Amount)
				}
			}
			gain[circle] -= int64(p.Slashed)
		}
	}
	for circle, g := range gain {
		if g >= 0 {
			j.t.Errorf("%s gained %d uzen", filepath.Base(circle), g)
		}
	}
}

// answered are the accounts that answered an audit of any job, or challenged a unit.
func (n *network) answered() map[string]bool {
	answers := []event.Kind{event.AuditSealed, event.AuditPassed, event.AuditFailed, event.UnitChallenged}
	who := map[string]bool{}
	n.each(1, "starling.training.v1.EventRun", func(_ int64, said map[string]string) {
		if slices.Contains(answers, event.Kind(said["kind"])) {
			who[said["who"]] = true
		}
	})
	return who
}

// circleOf returns the circle of an account that breaks the rules; "" for others.
func circleOf(liars []liar, id string) string {
	for _, l := range liars {
		if l.address == id && len(l.more) > 0 {
			return l.more[1]
		}
	}
	return ""
}

// books checks that the budget pays every unit once, and that all that it pays adds up.
func (j *job) books(receipts []reward.Receipt) {
	j.t.Helper()
	escrow, err := j.chain.Market.Escrow(j.t.Context(), j.id)
	if err != nil {
		j.t.Fatal(err)
	}
	type unit struct{ round, index uint32 }
	paid := map[unit]int{}
	var sum, fees, restored uint64
	for _, r := range receipts {
		switch {
		case r.Kind != reward.Work && r.Kind != reward.Audit:
		case r.Payer != "":
			restored += r.Amount
		default:
			sum, fees = sum+r.Amount, fees+r.Fee
			if r.Kind == reward.Work && r.Amount > 0 {
				paid[unit{r.Round, r.Unit}]++
			}
		}
	}
	units := j.run(j.id).Terms.Units
	for round := range uint32(j.rounds) {
		for index := range units {
			if n := paid[unit{round, index}]; n != 1 {
				j.t.Errorf("the budget pays unit %d of round %d %d times", index, round, n)
			}
		}
	}
	if sum != escrow.Paid || fees != escrow.Fee || escrow.Remaining() != 0 {
		j.t.Errorf("receipts of %d uzen and %d of fees, escrow %+v", sum, fees, escrow)
	}
	j.t.Logf("the budget pays %d uzen, those who were convicted %d", sum, restored)
}

// punished checks that the turns are counted in which a validator left out moves, that it loses stake and vote when
// they are as many in succession as the rules ask for, and that no other validator does: a move may come too late for
// anybody.
func (n *network) punished(censor int) {
	n.t.Helper()
	secret, err := identity.ReadSecret(filepath.Join(n.dir, n.validators[censor].name))
	if err != nil {
		n.t.Fatal(err)
	}
	address := strings.ToLower(identity.KeysOf(secret).Consensus.PubKey().Address().String())
	turns, slashed := map[string]uint32{}, map[string]bool{} // by proposer: the most in succession
	n.each(1, "starling.beacon.v1.EventLeftOut", func(_ int64, said map[string]string) {
		count, err := strconv.ParseUint(said["turns"], 10, 32)
		if err != nil {
			n.t.Fatal(err)
		}
		turns[said["proposer"]] = max(turns[said["proposer"]], uint32(count))
		slashed[said["proposer"]] = slashed[said["proposer"]] || said["slashed"] != "0"
	})
	n.t.Logf("turns in succession that left out moves of one account: %v; it is %s", turns, address)
	for who, lost := range slashed {
		if lost != (who == address && turns[who] >= censorship.DefaultParams().Turns) {
			n.t.Errorf("%s lost stake: %v", who, lost)
		}
	}
	n.votes(func(lost int) bool { return lost == 0 && !slashed[address] || lost == 1 && slashed[address] })
}

// votes checks how many validators have lost stake, and their votes with it.
func (n *network) votes(right func(lost int) bool) {
	n.t.Helper()
	lost, all := 0, n.stakes()
	for _, v := range all {
		if v.Jailed || v.Tokens != fmt.Sprint(identity.SelfStake) {
			lost++
		}
	}
	if !right(lost) {
		n.t.Errorf("the validators are %+v", all)
	}
}

// staked is a validator as the chain reports it.
type staked struct {
	Tokens string
	Jailed bool
}

func (n *network) stakes() []staked {
	n.t.Helper()
	r, err := http.Get(n.rest[0] + "/cosmos/staking/v1beta1/validators")
	if err != nil {
		n.t.Fatal(err)
	}
	defer r.Body.Close()
	var said struct{ Validators []staked }
	if err := json.NewDecoder(r.Body).Decode(&said); err != nil || len(said.Validators) != validators {
		n.t.Fatalf("%v: %+v", err, said)
	}
	return said.Validators
}

// drawn checks that a validator which keeps its part back takes no beacon from the chain, and loses nothing.
func (n *network) drawn() {
	n.t.Helper()
	n.votes(func(lost int) bool { return lost == 0 })
	blocks := 0
	n.each(withheld, "starling.beacon.v1.EventBeacon", func(height int64, said map[string]string) {
		blocks++
		parts, err := strconv.Atoi(said["outputs"])
		// a vote may come too late
		if err != nil || parts < 1 || parts >= validators || strings.Trim(said["value"], "0") == "" {
			n.t.Errorf("the beacon of block %d: %v", height, said)
		}
	})
	n.t.Logf("%d blocks from %d on have a beacon, of three parts at most", blocks, withheld)
	if blocks == 0 {
		n.t.Error("nothing was withheld")
	}
}

// each calls do with the attributes of each event of a type in the blocks from a height on.
func (n *network) each(from int64, kind string, do func(height int64, said map[string]string)) {
	n.t.Helper()
	rpc, err := endpoint.Dial(n.rpc[0])
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = rpc.Stop() }()
	last := n.height(n.validators[0])
	for h := from; h < last; h++ {
		r, err := rpc.BlockResults(n.t.Context(), &h)
		if err != nil {
			n.t.Fatal(err)
		}
		events := r.FinalizeBlockEvents
		for _, tx := range r.TxsResults {
			events = append(events, tx.Events...)
		}
		for _, e := range events {
			if e.Type != kind {
				continue
			}
			said := map[string]string{}
			for _, a := range e.Attributes {
				said[a.Key] = strings.Trim(a.Value, `"`)
			}
			do(h, said)
		}
	}
}

// withheld is a height after which a validator that keeps its part of the beacon back (chain/deviant) has done so.
const withheld = 40
