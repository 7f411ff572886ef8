package flood

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/referee"
	xmarket "github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/chain/x/training"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/sim/workload"
)

// Runs of a flood, in which every unit is disputed.
const (
	casesOfRun   = 100 // units, and workers
	seatedOfRun  = 4   // verifiers, each of which challenges a part of them
	segmentSteps = 6
)

// litigants are the members of the runs in whose units every verifier claims an error.
type litigants struct {
	workers, verifiers []*wallet.Key
	keys               map[string]*account
	runs               []run.State
	spec               canon.Digest
	opening            []byte
	claims             []claim
}

// claim is a unit that is disputed.
type claim struct {
	state      run.State
	unit       *work.Unit
	challenger string
}

// account is a key with its number and sequence on the chain.
type account struct {
	key  *wallet.Key
	next transaction.Account
}

func keyed(name string, i int) *wallet.Key {
	return wallet.KeyFromSeed(canon.Sum("bench/"+name, binary.LittleEndian.AppendUint64(nil, uint64(i))))
}

// newLitigants makes runs with so many disputes.
func newLitigants(disputes int) (*litigants, error) {
	l := &litigants{keys: map[string]*account{}}
	job, err := workload.New(workload.Size{Rounds: 3, Units: casesOfRun, Steps: 2 * segmentSteps, Segment: segmentSteps})
	if err != nil {
		return nil, err
	}
	t := job.Task
	l.spec, l.opening = t.Spec.Digest(), referee.Opening(t.Spec, t.Step, t.Corpus.Manifest(bundle.ShardTokens))
	var members []crew.Member
	add := func(list *[]*wallet.Key, r crew.Role, n int) {
		for i := range n {
			k := keyed("litigant/"+strconv.Itoa(int(r)), i)
			*list, l.keys[k.Address()] = append(*list, k), &account{key: k}
			members = append(members, crew.Member{ID: k.Address(), Role: r, Price: 1, Stake: 1_000_000})
		}
	}
	add(&l.workers, crew.Worker, casesOfRun)
	add(&l.verifiers, crew.Verifier, seatedOfRun)
	slices.SortFunc(members, func(a, b crew.Member) int { return strings.Compare(a.ID, b.ID) })
	for i := range (disputes + casesOfRun - 1) / casesOfRun {
		checks := bundle.Checks{AuditPPM: 100_000, Screen: terms.ScreenUpdates}
		of := bundle.Terms(numbered("run", i), t.Spec, t.Step.Flops(), checks)
		of.SpecCID, of.Genesis = "spec", terms.Checkpoint{Root: job.Genesis.Root(), CID: "genesis"}
		if err := l.begin(of, members, min(casesOfRun, disputes-i*casesOfRun)); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// begin returns a run whose units are committed, and whose audits are drawn.
func (l *litigants) begin(of terms.Terms, members []crew.Member, disputes int) error {
	env := func(height int64) transition.Env {
		return transition.Env{Height: height, Beacon: canon.Sum("bench/beacon", []byte(strconv.FormatInt(height, 10)))}
	}
	s, err := run.New(of, members, 0)
	if err != nil {
		return err
	}
	s, _ = s.Tick(env(1))
	for i := range s.Units {
		u := s.Units[i]
		d := canon.Sum("bench/commitment", []byte(of.Job), []byte(u.Worker))
		c := work.Commitment{
			Segments: slices.Repeat([]canon.Digest{d}, int(of.Segments)+1),
			Update:   d, UpdateCID: d.String(), Bytes: 1 << 20, Log: d.String(), HiddenRoots: d,
		}
		if s, _, err = s.Commit(env(2), u.Worker, u.ID(s.Round), c); err != nil {
			return err
		}
	}
	for h := range int64(3) {
		s, _ = s.Tick(env(3 + h))
	}
	l.runs = append(l.runs, s)
	for i, u := range s.Units[:disputes] {
		l.claims = append(l.claims, claim{s, u, l.verifiers[i%seatedOfRun].Address()})
	}
	return nil
}

// accounts that the genesis makes.
func (l *litigants) accounts() (list []chain.Funded) {
	for _, k := range slices.Concat(l.workers, l.verifiers) {
		list = append(list, chain.Funded{Address: k.Address(), Amount: 1_000_000})
	}
	return list
}

// enter adds the members and the budgets of the runs.
func (l *litigants) enter(add func(module, collection string, key, value any)) {
	for _, k := range l.workers {
		add("registry", "participants", k.Address(), staked(k.Address(), crew.Worker))
	}
	for _, k := range l.verifiers {
		add("registry", "participants", k.Address(), staked(k.Address(), crew.Verifier))
	}
	for _, s := range l.runs {
		o := market.Order{ID: s.Terms.Job, Consumer: l.workers[0].Address(), Terms: s.Terms, Budget: 1 << 40, PriceCap: 1}
		add("market", "jobs", o.ID, xmarket.Job{Order: o, Status: xmarket.Running})
		add("market", "escrows", o.ID, market.Escrow{Budget: o.Budget})
	}
}

func staked(id string, r crew.Role) registry.Participant {
	return registry.Participant{ID: id, Roles: []crew.Role{r}, PeerID: id, Device: "bench", Stake: 100_000_000}
}

func (l *litigants) genesis() (json.RawMessage, error) {
	return training.Genesis(map[canon.Digest][]byte{l.spec: l.opening}, l.runs...)
}

// sign is the next transaction of an account.
func (l *litigants) sign(ctx context.Context, id string, m sdk.Msg) ([]byte, error) {
	a := l.keys[id]
	tx, err := transaction.Sign(ctx, a.key, a.next, 0, m)
	a.next.Sequence++
	return tx, err
}

// challenges open the disputes: about the first segment.
func (l *litigants) challenges(ctx context.Context) (txs [][]byte, err error) {
	for _, c := range l.claims {
		digest := c.unit.Commit.Digest()
		tx, failed := l.sign(ctx, c.challenger, &trainingpb.MsgChallenge{
			Sender: c.challenger, Job: c.state.Terms.Job, Round: c.state.Round, Unit: c.unit.Index, Attempt: c.unit.Attempt,
			Segment: 1, Commitment: digest[:],
		})
		txs, err = append(txs, tx), errors.Join(err, failed)
	}
	return txs, err
}

// moves are those of all disputes, in their order: the worker shows the states inside the segment, and the challenger
// names the first.
func (l *litigants) moves(ctx context.Context) (shown, picked [][]byte, err error) {
	states := dispute.Interval{To: segmentSteps}.Boundaries()
	for _, c := range l.claims {
		digests := slices.Repeat([]canon.Digest{c.unit.Commit.Update}, len(states))
		show := dispute.Move{States: &dispute.States{Digests: digests}}
		a, failed := l.move(ctx, c, c.unit.Worker, show)
		b, broken := l.move(ctx, c, c.challenger, dispute.Move{Pick: &dispute.Pick{}})
		shown, picked, err = append(shown, a), append(picked, b), errors.Join(err, failed, broken)
	}
	return shown, picked, err
}

func (l *litigants) move(ctx context.Context, c claim, from string, m dispute.Move) ([]byte, error) {
	return l.sign(ctx, from, &trainingpb.MsgMove{
		Sender: from, Job: c.state.Terms.Job, Round: c.state.Round, Unit: c.unit.Index, Attempt: c.unit.Attempt,
		Body: m.Encode(),
	})
}

// played counts the disputes of all runs, and the moves in them.
func (l *litigants) played(ctx context.Context, v *chain.Validator) (games, moves int, err error) {
	c := client.New(v.Client(), l.workers[0])
	defer c.Close()
	for _, s := range l.runs {
		list, err := c.Training.Disputes(ctx, s.Terms.Job)
		if err != nil {
			return games, moves, err
		}
		games += len(list)
		for _, g := range list {
			switch g.Stage {
			case dispute.ShowStates:
			case dispute.PickState:
				moves++
			default:
				moves += 2
			}
		}
	}
	return games, moves, nil
}
