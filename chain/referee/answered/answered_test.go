package answered_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/answered"
	"github.com/starling-network/starling/chain/referee/answered/answeredtest"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/protocol/dispute"
)

const (
	provider = "starling1provider"
	accuser  = "starling1accuser"
	vocab    = answeredtest.Vocab
)

// hosted is a model that is hosted.
type hosted struct{ *answeredtest.Hosted }

func host(t testing.TB, seed uint64) hosted { return hosted{answeredtest.Host(t, seed)} }

func (h hosted) open(t testing.TB, r answer.Receipt) *answered.Case {
	t.Helper()
	c, err := answered.Open(r, 0, h.Program.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (h hosted) witness(t testing.TB, c *answered.Case) *witness.Run {
	t.Helper()
	w, err := c.Witness(1, h.Weights, h.Roots)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// transcript is a dispute with the bytes of its moves.
type transcript struct {
	dispute.Dispute
	bytes, largest, state int
}

// play disputes to the end, as the chain would: everything passes through bytes. A party without a move is silent.
func play(t testing.TB, c *answered.Case, asserter, challenger dispute.Oracle) (g transcript) {
	t.Helper()
	var err error
	if g.Dispute, err = dispute.Open(c.Config("accusation 1", accuser, 10), 1, 1); err != nil {
		t.Fatal(err)
	}
	for height := int64(2); g.Stage != dispute.Over; height++ {
		var m dispute.Move
		from := provider
		if g.Turn == dispute.Asserter {
			m, err = dispute.NextAsserterMove(g.Dispute, asserter)
		} else {
			from = accuser
			m, err = dispute.NextChallengerMove(g.Dispute, challenger)
		}
		if err != nil {
			g.Dispute = g.Tick(g.Deadline + 1)
			break
		}
		b := m.Encode()
		g.bytes, g.largest = g.bytes+len(b), max(g.largest, len(b))
		if m, err = dispute.Decode(b); err != nil {
			t.Fatal(err)
		}
		if g.Dispute, err = g.Apply(height, from, m, c); err != nil {
			t.Fatal(err)
		}
		g.state = max(g.state, len(canon.MustMarshal(g.Dispute)))
	}
	return g
}

// wrong is a receipt with another token.
func wrong(r answer.Receipt, at int) answer.Receipt {
	r.Answer = slices.Clone(r.Answer)
	r.Answer[at] = (r.Answer[at] + 1) % vocab
	return r
}

// A provider that executes honestly what it signed a lie about shows the lie itself.
func TestWrongAnswerLoses(t *testing.T) {
	h := host(t, 1)
	r := h.Answer(t, provider)
	for name, lie := range map[string]answer.Receipt{
		"first token": wrong(r, 0), "last token": wrong(r, len(r.Answer)-1),
		"seed":   func() answer.Receipt { x := r; x.Seed++; return x }(),
		"offset": func() answer.Receipt { x := r; x.First++; return x }(),
		"end":    func() answer.Receipt { x := r; x.Stopped = true; return x }(),
	} {
		c := h.open(t, lie)
		g := play(t, c, h.witness(t, c), h.witness(t, c))
		if v := g.Verdict; !v.AsserterLies || v.Leaf != string(dispute.Binding) || g.Loser() != provider {
			t.Errorf("%s: %+v", name, v)
		}
	}
	c := h.open(t, r)
	if g := play(t, c, h.witness(t, c), h.witness(t, c)); g.Verdict.AsserterLies || g.Loser() != accuser {
		t.Errorf("an accuser without a difference: %+v", g.Verdict)
	}
}

// liar executes another program, or on other inputs, than the one of the receipt.
func liar(t testing.TB, p *program.Program, c *answered.Case, h hosted, r answer.Receipt) *witness.Run {
	t.Helper()
	in := answered.Answer(r, 0).Inputs(r.Length())
	for name, x := range h.Weights {
		in[parts.Param+name] = x
	}
	w, err := witness.NewRun(p, 1, in, h.Roots)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// tampered is a program with another operator i, or nil: it has none that computes anything else.
func tampered(p *program.Program, i int) *program.Program {
	other := &program.Program{Numerics: p.Numerics, Ops: slices.Clone(p.Ops), Outputs: p.Outputs}
	op := &other.Ops[i]
	op.Ints, op.Data = slices.Clone(op.Ints), slices.Clone(op.Data)
	swap := map[program.Kind]program.Kind{program.Add: program.Sub, program.Sub: program.Add, program.Mul: program.Max,
		program.Max: program.Add, program.Min: program.Max, program.Exp: program.Sin, program.Log: program.Sin,
		program.Neg: program.Abs, program.Silu: program.Tanh, program.Sin: program.Cos, program.Cos: program.Sin,
		program.Rsqrt: program.Sqrt, program.Sqrt: program.Exp, program.Less: program.GreaterEqual,
		program.LessEqual: program.Greater, program.GreaterEqual: program.Less, program.Greater: program.LessEqual,
		program.Equal: program.NotEqual, program.NotEqual: program.Equal, program.And: program.Or, program.Or: program.And,
		program.ReduceMax: program.ReduceSum, program.ReduceSum: program.ReduceMax, program.ReduceMin: program.ReduceMax,
		program.Div: program.Sub}
	switch k := op.Kind; {
	case swap[k] != 0:
		op.Kind = swap[k]
	case k == program.Constant:
		op.Data[0] ^= 1
	case k == program.Where:
		op.In = []int32{op.In[0], op.In[2], op.In[1]}
	case k == program.Slice && op.Ints[0] > 0:
		op.Ints[0]--
		op.Ints[len(op.Ints)/3]--
	default:
		return nil
	}
	if other.Check(program.DefaultLimits) != nil {
		return nil
	}
	return other
}

// Every kind of lie in the trace is convicted over one tile, and an accuser that tells it loses against the honest
// provider.
func TestLiesInTheTrace(t *testing.T) {
	h := host(t, 1)
	r := h.Answer(t, provider)
	c := h.open(t, r)
	honest := h.witness(t, c)
	truth, err := honest.Trace(0)
	if err != nil {
		t.Fatal(err)
	}
	kinds, moves, most, largest := map[program.Kind]int{}, 0, 0, 0
	tell := func(name string, w *witness.Run, operator int) bool {
		lie, err := w.Trace(0)
		if err != nil || lie.Root() == truth.Root() {
			return false // an index that does not exist, or no difference
		}
		g := play(t, c, w, honest)
		if v := g.Verdict; !v.AsserterLies || v.Reason != dispute.Recomputed || v.Leaf != string(dispute.Tile) ||
			operator >= 0 && int(v.Operator) != operator {
			t.Errorf("%s: %+v", name, v)
		}
		moves, most, largest = max(moves, int(g.Ply())), max(most, g.bytes), max(largest, g.state)
		if g := play(t, c, honest, w); g.Verdict.AsserterLies || g.Loser() != accuser {
			t.Errorf("%s: an honest provider lost: %+v", name, g.Verdict)
		}
		return true
	}
	for i := range h.Program.Ops {
		k := h.Program.Ops[i].Kind
		if kinds[k] >= 2 {
			continue
		}
		if p := tampered(h.Program, i); p != nil && tell(fmt.Sprintf("operator %d, %s", i, k), liar(t, p, c, h, r), i) {
			kinds[k]++
		}
	}
	if len(kinds) < 18 {
		t.Errorf("lies of kinds %v", kinds)
	}
	for name, change := range map[string]func(r *answer.Receipt){
		"text": func(r *answer.Receipt) { *r = wrong(*r, 4) }, "seed": func(r *answer.Receipt) { r.Seed++ },
		"temperature": func(r *answer.Receipt) { r.Temperature-- }, "top_p": func(r *answer.Receipt) { r.TopP-- },
		"place": func(r *answer.Receipt) { r.Answer, r.Asked = r.Answer[:5], 5 },
	} {
		other := r
		change(&other)
		if !tell(name, liar(t, h.Program, c, h, other), -1) {
			t.Errorf("%s: no difference", name)
		}
	}
	if !tell("another model", liar(t, h.Program, c, host(t, 2), r), -1) {
		t.Error("another model: no difference")
	}
	t.Logf("%d kinds of lies: at most %d moves of %d bytes in all, %d bytes of state", len(kinds), moves, most, largest)
	if moves > 24 || most > 1<<20 || largest > 16<<10 {
		t.Errorf("%d moves of %d bytes, %d bytes of state", moves, most, largest)
	}
}

// mute makes no move.
type mute struct{ dispute.Oracle }

func (mute) Trace(uint32) (*canon.Tree, error) { return nil, dispute.ErrWork }

func TestSilenceLoses(t *testing.T) {
	h := host(t, 1)
	c := h.open(t, h.Answer(t, provider))
	if g := play(t, c, mute{h.witness(t, c)}, h.witness(t, c)); !g.Verdict.AsserterLies ||
		g.Verdict.Reason != dispute.Silence {
		t.Errorf("a silent provider: %+v", g.Verdict)
	}
	if g := play(t, c, h.witness(t, c), mute{h.witness(t, c)}); g.Verdict.AsserterLies ||
		g.Verdict.Reason != dispute.Silence {
		t.Errorf("a silent accuser: %+v", g.Verdict)
	}
}

func TestCasesThatCannotBeDecided(t *testing.T) {
	h := host(t, 1)
	r := h.Answer(t, provider)
	if cost, err := h.open(t, r).Decidable(evidence.MaxCheck); err != nil {
		t.Error(err)
	} else {
		t.Logf("to check that all questions can be answered costs %d units", cost)
	}
	if _, err := h.open(t, r).Decidable(1); !errors.Is(err, evidence.ErrTooLarge) {
		t.Error(err)
	}
	fails := func(name string, r answer.Receipt, from uint32, code []byte) {
		if _, err := answered.Open(r, from, code); !errors.Is(err, answered.ErrCase) {
			t.Errorf("%s: %v", name, err)
		}
	}
	code := h.Program.Encode()
	fails("no program", r, 0, nil)
	fails("a long program", r, 0, make([]byte, answered.MaxProgram+1))
	fails("another program", r, 0, tampered(h.Program, len(h.Program.Ops)-1).Encode())
	if _, err := answered.Open(r, 20, code); !errors.Is(err, answer.ErrWindow) {
		t.Error(err)
	}
	for name, change := range map[string]func(b *program.Builder) program.Value{
		"an input that is none": func(b *program.Builder) program.Value { return b.Input("more", tensor.Make(tensor.Int32)) },
		"no weights": func(b *program.Builder) program.Value {
			return b.Constant(tensor.FromI32([]int32{64}))
		},
		"another shape": func(b *program.Builder) program.Value { return b.Input("place", tensor.Make(tensor.Int32, 5)) },
	} {
		b := program.NewBuilder()
		b.Output("wrong", change(b))
		p, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		r := r
		r.Program = p.Digest()
		fails(name, r, 0, p.Encode())
	}
	longer := r
	longer.Prompt = make([]int32, 60)
	fails("a program for shorter texts", longer, 0, code)
}

// A payload that does not belong to the question convicts its accuser.
func TestBadEvidenceLoses(t *testing.T) {
	h := host(t, 1)
	r := wrong(h.Answer(t, provider), 3)
	c := h.open(t, r)
	for name, payload := range map[string][]byte{"nothing": nil, "other bytes": {1, 2, 3},
		"other outputs": canon.MustMarshal(evidence.Binding{Outputs: make([]canon.Digest, len(h.Program.Ops))})} {
		g, err := dispute.Open(c.Config("accusation 1", accuser, 10), 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		m, err := dispute.NextAsserterMove(g, h.witness(t, c))
		if err != nil {
			t.Fatal(err)
		}
		if g, err = g.Apply(2, provider, m, c); err != nil {
			t.Fatal(err)
		}
		g, err = g.Apply(3, accuser, dispute.Move{Bind: &dispute.BindClaim{Payload: payload}}, c)
		if err != nil || g.Verdict.AsserterLies || g.Verdict.Reason != dispute.BadLeaf {
			t.Errorf("%s: %+v, %v", name, g.Verdict, err)
		}
	}
	for _, k := range []dispute.Kind{dispute.Start, dispute.Update, dispute.Carry} {
		if _, err := c.Judge(dispute.Claim{Kind: k}, nil); !errors.Is(err, evidence.ErrPayload) {
			t.Errorf("%s: %v", k, err)
		}
	}
	if _, err := c.Judge(dispute.Claim{Kind: dispute.Tile, Index: 1 << 30}, nil); !errors.Is(err, evidence.ErrPayload) {
		t.Error(err)
	}
}
