package referee

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/parameter"
	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/transform"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/work"
)

// twister says something else of one leaf of a result.
type twister struct {
	*witness.Witness
	kind  dispute.Kind
	index int
}

func (w twister) Result(k dispute.Kind) (*canon.Tree, error) {
	t, err := w.Witness.Result(k)
	if err != nil || k != w.kind {
		return t, err
	}
	list := leaves(t)
	list[w.index] = twisted
	return canon.NewTree(list), nil
}

var twisted = canon.Leaf([]byte("twisted"))

func (w twister) Partial(c dispute.Claim, after []uint64) ([]canon.Digest, error) {
	out, err := w.Witness.Partial(c, after)
	for i, n := range after {
		if err == nil && c.Kind == w.kind && int(c.Index) == w.index && n == w.Parts(c) {
			out[i] = twisted
		}
	}
	return out, err
}

func roots(t *testing.T, task *train.Task, w *witness.Witness, o dispute.Oracle) work.Commitment {
	t.Helper()
	at := []uint64{0}
	for k, s := uint32(1), uint32(0); k <= task.Spec.Segments(); k++ {
		s += task.Spec.SegmentSteps(k)
		at = append(at, uint64(s))
	}
	segments, err := w.Steps(at)
	if err != nil {
		t.Fatal(err)
	}
	update, err := o.Result(dispute.Update)
	if err != nil {
		t.Fatal(err)
	}
	on, err := o.Result(dispute.Carry)
	if err != nil {
		t.Fatal(err)
	}
	return work.Commitment{Segments: segments, Update: update.Root(), HandedState: work.HandedState{Root: on.Root()}}
}

// In a job whose units carry residuals to the next round, a party loses its dispute if it lies about an update or about
// a residual, with any codec and in any tensor. An honest party wins. A challenger that started from another state
// cannot open a dispute.
func TestStateThatAUnitCarries(t *testing.T) {
	wide := tiny
	// whose embeddings are sent in two parts, and transformed across them
	wide.width, wide.batch, wide.steps, wide.segment = 272, 1, 1, 1
	for name, x := range map[string]struct {
		size
		codec, transform string
	}{
		"sparse, 2 bits": {tiny, codec.TopKName(82, 2), ""}, "sparse, 16 bits": {tiny, codec.TopKName(300, 16), ""},
		"int8": {tiny, codec.Int8, ""}, "fp4": {tiny, codec.E3M0, ""}, "sign": {tiny, codec.Sign, ""},
		"frequencies":          {tiny, codec.TopKName(82, 16), transform.CosineTransform},
		"frequencies in parts": {wide, codec.TopKName(82, 2), transform.CosineTransform},
	} {
		if always := x.transform != "" || x.codec == codec.Int8; !always && !*long {
			continue
		}
		plain, start := job(t, x.size)
		task := respecified(plain, func(s *train.Spec) {
			s.Exchange = train.Exchange{Codec: x.codec, Transform: x.transform, Rule: aggregate.Mean, Outer: outer.SGD, Rate: 1,
				Feedback: 0.95, Carry: 4}
		})
		if err := errors.Join(task.Spec.Check(), parameter.Fit(task.Spec, task.Step, evidence.Limit(1<<20))); err != nil {
			t.Fatal(err)
		}
		base := *start
		base.Outer = nil
		from := train.Zeros(base.Params, 1)[0]
		for i, x := range from {
			philox.NormalTo(x.F32(), 4, uint64(i))
		}
		honest := witness.New(task, &base, unit, from, shardTokens)
		right := roots(t, task, honest, honest)
		u, on, err := outer.Commit(task.Spec, base.Names, base.Round, unit, result(t, task, &base, from), from)
		if err != nil || u.Root() != right.Update || train.CarriedRoot(train.Roots(on)) != right.HandedState.Root {
			t.Fatalf("%s: a witness and a worker make other results: %v", name, err)
		}
		r, err := Open(task.Spec.Digest(), Opening(task.Spec, task.Step, task.Corpus.Manifest(shardTokens)), 0)
		if err != nil {
			t.Fatal(err)
		}
		var leaf dispute.Claim
		var payload []byte
		spy := judge{r, func(c dispute.Claim, p []byte) { leaf, payload = c, p }}
		play := func(c work.Commitment, segment uint32, asserter, challenger dispute.Oracle) dispute.Dispute {
			d := duty(&base, c)
			d.From = make([]work.HandedState, unit+1)
			d.From[unit].Root = train.CarriedRoot(train.Roots(from))
			return playDuty(t, task, d, segment, asserter, challenger, spy)
		}
		last, many := uint32(len(right.Segments)), false
		for _, index := range []int{0, len(base.Names) - 1} {
			for k, segment := range map[dispute.Kind]uint32{dispute.Update: last, dispute.Carry: last + 1} {
				liar := twister{honest, k, index}
				g := play(roots(t, task, honest, liar), segment, liar, witness.New(task, &base, unit, from, shardTokens))
				many = many || leaf.Part > 0
				if !g.Verdict.AsserterLies || g.Verdict.Reason != dispute.Recomputed || g.Verdict.Leaf != string(k) {
					t.Errorf("%s: a lie about %s of parameter %d: %+v", name, k, index, *g.Verdict)
				}
				for i := 0; i < len(payload); i += 1 + len(payload)/61 {
					bad := slices.Clone(payload)
					bad[i] ^= 0x10
					if ruling, err := r.Judge(leaf, bad); !errors.Is(err, evidence.ErrPayload) {
						t.Errorf("%s, %s of parameter %d: byte %d of %d changed: %+v, %v", name, k, index, i, len(payload), ruling, err)
					}
				}
				if g := play(right, segment, honest,
					twister{witness.New(task, &base, unit, from, shardTokens), k, index}); g.Verdict.AsserterLies {
					t.Errorf("%s: an honest worker lost about %s of parameter %d: %+v", name, k, index, *g.Verdict)
				}
				if g := play(right, segment, honest, witness.New(task, &base, unit, nil, shardTokens)); g.Verdict.AsserterLies ||
					g.Verdict.Reason != dispute.BadLeaf {
					t.Errorf("%s: a challenger that starts from nothing, about %s: %+v", name, k, *g.Verdict)
				}
			}
		}
		if many != (x.size == wide) {
			t.Errorf("%s: in many parts: %t", name, many)
		}
	}
}

func result(t *testing.T, task *train.Task, base *train.Checkpoint, from []*tensor.Tensor) *train.Result {
	t.Helper()
	r, err := task.Run(base, unit, from, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The carried state of a large parameter is made in parts. The referee makes each part from the operands that the
// witness shows.
func TestPartsOfCarriedState(t *testing.T) {
	shape := tensor.Make(tensor.Float32, 3, codec.PartElements)
	for _, name := range []string{codec.TopKName(82, 2), codec.Int8, codec.E3M0, codec.Sign} {
		s := parameter.Sent{Codec: name, Shape: shape}
		if n := s.ResidualParts(); n != 3 {
			t.Errorf("%s: %d parts", name, n)
		}
		x := tensor.New(shape)
		philox.NormalTo(x.F32(), 1, 1)
		done := new(canon.Frontier)
		for part := range s.ResidualParts() {
			lo, hi := s.ResidualRange(part)
			got := carried(shape, done, x.F32()[lo:hi], part+1 == s.ResidualParts())
			want := x.Root()
			if part < 2 {
				want = evidence.Progress{Done: x.Tree().Frontier(hi * 4 / tensor.LeafBytes)}.Digest()
			}
			if got != want {
				t.Errorf("%s: part %d leads to something else", name, part)
			}
		}
	}
}
