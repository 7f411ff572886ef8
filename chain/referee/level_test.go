package referee

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/division"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/work"
)

// place is where the parts of a unit begin to be what an honest execution does not make.
type place struct {
	kind  dispute.Kind
	step  uint32
	index uint32 // of the operator or the parameter
	part  uint64
}

// pretender says what an honest execution says up to a place, and something else of everything after it.
type pretender struct {
	*witness.Witness
	at place
}

func lied(what string, numbers ...any) canon.Digest { return canon.Hash("lie/"+what, numbers) }

func (p pretender) Steps(after []uint64) ([]canon.Digest, error) {
	out, err := p.Witness.Steps(after)
	for i, n := range after {
		if err == nil && p.at.kind == dispute.Tile && n > uint64(p.at.step) {
			out[i] = lied("state", n)
		}
	}
	return out, err
}

func (p pretender) Trace(step uint32) (*canon.Tree, error) {
	t, err := p.Witness.Trace(step)
	if err != nil || p.at.kind != dispute.Tile || step < p.at.step {
		return t, err
	}
	list := leaves(t)
	for op := range list {
		if step > p.at.step || op >= int(p.at.index) {
			list[op] = lied("output", step, op)
		}
	}
	return canon.NewTree(list), nil
}

func (p pretender) Result(k dispute.Kind) (*canon.Tree, error) {
	t, err := p.Witness.Result(k)
	if err != nil || p.at.kind != dispute.Update {
		return t, err
	}
	list := leaves(t)
	for i := int(p.at.index); i < len(list); i++ {
		list[i] = lied("payload", i)
	}
	return canon.NewTree(list), nil
}

func (p pretender) Partial(c dispute.Claim, after []uint64) ([]canon.Digest, error) {
	out, err := p.Witness.Partial(c, after)
	if err != nil || c.Kind != p.at.kind || c.Step != p.at.step && c.Kind == dispute.Tile || c.Index != p.at.index {
		return out, err
	}
	total := p.Parts(c)
	for i, n := range after {
		switch {
		case n == total && c.Kind == dispute.Tile:
			out[i] = lied("output", c.Step, int(c.Index))
		case n == total:
			out[i] = lied("payload", int(c.Index))
		case n > p.at.part:
			out[i] = lied("part", n)
		}
	}
	return out, nil
}

// commit is what a party commits to of its unit.
func commit(t testing.TB, s *train.Spec, o dispute.Oracle) work.Commitment {
	at := []uint64{0}
	for k := range s.Segments() {
		at = append(at, at[k]+uint64(s.SegmentSteps(k+1)))
	}
	segments, err := o.Steps(at)
	if err != nil {
		t.Fatal(err)
	}
	u, err := o.Result(dispute.Update)
	if err != nil {
		t.Fatal(err)
	}
	return work.Commitment{Segments: segments, Update: u.Root()}
}

// A job in which products, sums, looked-up rows and updates are made in several parts.
var parted = size{layers: 1, width: 136, heads: 2, batch: 6, length: 64, steps: 3, segment: 2}

// ends is the first, the second and the last of n.
func ends(n uint64) []uint64 { return slices.Compact([]uint64{0, min(1, n-1), n - 1}) }

// places lists the first and the last of everything there is to lie about.
func places(task *train.Task, w *witness.Witness, base *train.Checkpoint) (out []place) {
	ops := task.Step.Ops
	many := 0 // the operator made in the most parts
	for i := range ops {
		if w.Parts(dispute.Claim{Kind: dispute.Tile, Index: uint32(i)}) > w.Parts(dispute.Claim{Kind: dispute.Tile,
			Index: uint32(many)}) {
			many = i
		}
	}
	first := func(k program.Kind) int {
		return slices.IndexFunc(ops, func(op program.Operator) bool { return op.Kind == k })
	}
	steps := task.Spec.Steps
	for step := range steps { // first and last of a segment, and of the unit
		for _, op := range []int{0, len(ops) - 1} {
			out = append(out, place{dispute.Tile, step, uint32(op),
				w.Parts(dispute.Claim{Kind: dispute.Tile, Index: uint32(op)}) - 1})
		}
	}
	for _, op := range []int{first(program.Dot), first(program.AddRows), first(program.TakeRows), many} {
		for _, part := range ends(w.Parts(dispute.Claim{Kind: dispute.Tile, Index: uint32(op)})) {
			out = append(out, place{dispute.Tile, 1, uint32(op), part})
		}
	}
	large := 0 // the parameter whose payload is made in the most parts
	for i := range base.Names {
		if w.Parts(dispute.Claim{Kind: dispute.Update, Index: uint32(i)}) > w.Parts(dispute.Claim{Kind: dispute.Update,
			Index: uint32(large)}) {
			large = i
		}
	}
	for part := range w.Parts(dispute.Claim{Kind: dispute.Update, Index: uint32(large)}) {
		out = append(out, place{kind: dispute.Update, index: uint32(large), part: part})
	}
	return append(out, place{kind: dispute.Update},
		place{kind: dispute.Update, index: uint32(len(base.Names) - 1),
			part: w.Parts(dispute.Claim{Kind: dispute.Update, Index: uint32(len(base.Names) - 1)}) - 1})
}

// The party that lies loses, and the dispute ends where the lie begins, on every level: segment, step, operator,
// parameter, part.
func TestLiesOnEveryLevel(t *testing.T) {
	task, base := job(t, parted)
	honest := witness.New(task, base, unit, nil, shardTokens)
	other := witness.New(task, base, unit, nil, shardTokens)
	truth := commit(t, task.Spec, honest)
	var most dispute.Verdict
	for n, at := range places(task, honest, base) {
		liar := pretender{other, at}
		claimed := commit(t, task.Spec, liar)
		name := fmt.Sprintf("%s of step %d, index %d, part %d", at.kind, at.step, at.index, at.part)
		g := play(t, task, base, claimed, differ(truth, claimed), liar, honest)
		v := *g.Verdict
		if !v.AsserterLies || v.Reason != dispute.Recomputed || v.Leaf != string(at.kind) || v.Operator != at.index ||
			v.Part != at.part {
			t.Errorf("%s: %+v: %s", name, v, g.Text(g.Log[len(g.Log)-1], nil))
		}
		if v.LeafBytes > 1<<20 {
			t.Errorf("%s: a leaf of %d bytes", name, v.LeafBytes)
		}
		if n%4 == 0 || *long {
			if g = play(t, task, base, truth, differ(truth, claimed), honest, liar); g.Verdict.AsserterLies {
				t.Errorf("%s: an honest worker lost: %+v", name, *g.Verdict)
			}
		}
		most.LeafBytes, most.Moves, most.HashBytes = max(most.LeafBytes, v.LeafBytes), max(most.Moves, v.Moves),
			max(most.HashBytes, v.HashBytes)
	}
	t.Logf("at most %d moves, %d bytes of digests, a leaf of %d bytes", most.Moves, most.HashBytes, most.LeafBytes)
}

// Payloads that are not what was asked for: other parts, too much, too little, states that do not belong.
func TestMalformedPayloads(t *testing.T) {
	task, base := job(t, parted)
	w := witness.New(task, base, unit, nil, shardTokens)
	r := newReferee(task.Spec, task.Step)
	op := slices.IndexFunc(task.Step.Ops, func(op program.Operator) bool { return op.Kind == program.Dot })
	c, prove := operatorClaim(t, w, base, 2, op, w.Parts(dispute.Claim{Kind: dispute.Tile, Index: uint32(op)})/2)
	payload, err := w.Leaf(c, prove)
	if err != nil {
		t.Fatal(err)
	}
	var p evidence.Operator
	if err := canon.Unmarshal(payload, &p); err != nil {
		t.Fatal(err)
	}
	spoil := func(name string, change func(p *evidence.Operator)) {
		t.Helper()
		bad := p
		bad.Operands = slices.Clone(p.Operands)
		change(&bad)
		if ruling, err := r.Judge(c, canon.MustMarshal(bad)); !errors.Is(err, evidence.ErrPayload) {
			t.Errorf("%s: %+v, %v", name, ruling, err)
		}
	}
	if ruling, err := r.Judge(c, canon.MustMarshal(p)); err != nil || !ruling.Right {
		t.Fatalf("%+v, %v", ruling, err)
	}
	spoil("no operands", func(p *evidence.Operator) { p.Operands = nil })
	spoil("an operand twice", func(p *evidence.Operator) { p.Operands = append(p.Operands, p.Operands[0]) })
	spoil("operands in another order", func(p *evidence.Operator) { slices.Reverse(p.Operands) })
	spoil("a leaf too few", func(p *evidence.Operator) { p.Operands[0].Shown.Bytes = p.Operands[0].Shown.Bytes[4096:] })
	spoil("a leaf too many", func(p *evidence.Operator) {
		p.Operands[0].Shown.Bytes = append(make([]byte, 4096), p.Operands[0].Shown.Bytes...)
	})
	spoil("no cover", func(p *evidence.Operator) { p.Operands[0].Shown.Cover = nil })
	spoil("a long cover", func(p *evidence.Operator) { p.Operands[0].Shown.Cover = make([]canon.Digest, 40_000) })
	spoil("no proof", func(p *evidence.Operator) { p.Operands[0].Proof = nil })
	spoil("a long proof", func(p *evidence.Operator) { p.Operands[0].Proof = make(canon.Proof, 10_000) })
	spoil("a wide proof", func(p *evidence.Operator) {
		p.Operands[0].Proof = slices.Clone(p.Operands[0].Proof)
		p.Operands[0].Proof[0] = make([]canon.Digest, 20_000)
	})
	spoil("nothing before it", func(p *evidence.Operator) { p.Before = evidence.Progress{} })
	spoil("another state before it", func(p *evidence.Operator) {
		p.Before.State = append(slices.Clone(p.Before.State), 0)
	})
	spoil("many leaves before it", func(p *evidence.Operator) { p.Before.Done = make([]canon.Digest, 50_000) })

	// A state that both parties call agreed, and that is none.
	for _, before := range []evidence.Progress{{}, {State: make([]byte, 7)}, {Done: make([]canon.Digest, 3)},
		{Done: make([]canon.Digest, 3), State: p.Before.State}} {
		bad, claim := p, c
		bad.Before, claim.Before = before, before.Digest()
		if _, err := r.Judge(claim, canon.MustMarshal(bad)); !errors.Is(err, evidence.ErrPayload) &&
			len(before.Done) != len(p.Before.Done) {
			t.Errorf("agreed on %d leaves and %d bytes: %v", len(before.Done), len(before.State), err)
		}
	}
	for _, part := range []uint64{w.Parts(dispute.Claim{Kind: dispute.Tile, Index: c.Index}), 1 << 63} {
		c.Part = part
		if _, err := r.Judge(c, canon.MustMarshal(p)); !errors.Is(err, evidence.ErrPayload) {
			t.Errorf("part %d: %v", part, err)
		}
	}
}

// The job of these tests has what they are about.
func TestPartedJobHasManyParts(t *testing.T) {
	task, base := job(t, parted)
	w := witness.New(task, base, unit, nil, shardTokens)
	kinds := map[program.Kind]int{}
	for i := range task.Step.Ops {
		if op := &task.Step.Ops[i]; op.Kind != program.Input {
			d, err := division.Of(task.Step, i)
			if err != nil {
				t.Fatal(err)
			}
			kinds[op.Kind] = max(kinds[op.Kind], d.Parts())
		}
	}
	if kinds[program.Dot] < 2 {
		t.Errorf("no product is made in several parts a tile: %v", kinds)
	}
	if n := len(base.Names); w.Parts(dispute.Claim{Kind: dispute.Update, Index: uint32(n)}) != 1 {
		t.Error("a parameter that there is not")
	}
}
