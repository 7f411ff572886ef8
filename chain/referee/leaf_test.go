package referee

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
)

// BenchmarkLeaf measures the largest leaf of a job: its bytes, and the time of the referee.
func BenchmarkLeaf(b *testing.B) {
	task, base := job(b, size{layers: 1, width: 128, heads: 4, batch: 4, length: 128, steps: 2, segment: 1})
	w := witness.New(task, base, unit, nil, shardTokens)
	r := newReferee(task.Spec, task.Step)
	worst := map[string]int{}
	for i, op := range task.Step.Ops {
		j, ok := worst[op.Kind.String()]
		if !ok || cost(task.Step, i) > cost(task.Step, j) {
			worst[op.Kind.String()] = i
		}
	}
	for _, name := range []string{"Dot", "Add", "AdamP", "Exp", "ReduceSum", "Input"} {
		c, prove := lastPart(b, w, base, 1, worst[name])
		payload, err := w.Leaf(c, prove)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if ruling, err := r.Judge(c, payload); err != nil || !ruling.Right {
					b.Fatal(ruling, err)
				}
			}
			b.ReportMetric(float64(len(payload)), "leaf-bytes")
		})
	}
	b.Run("Open", func(b *testing.B) {
		opening := Opening(task.Spec, task.Step, task.Corpus.Manifest(shardTokens))
		for b.Loop() {
			if _, err := Open(task.Spec.Digest(), opening, 0); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(opening)), "opening-bytes")
	})
}

func cost(p *program.Program, i int) (n uint64) {
	single := program.Program{Ops: p.Ops[:i+1]}
	before := program.Program{Ops: p.Ops[:i]}
	n = single.Flops() - before.Flops()
	for _, v := range p.Ops[i].In {
		n += uint64(p.Ops[v].Out.Bytes())
	}
	return n
}

// A work in another version of the numerics than is in force is refused as such, whatever else a build thinks of it.
func TestOpenInAVersion(t *testing.T) {
	task, _ := job(t, tiny)
	open := func(asked uint32, change func(*train.Spec)) error {
		s := *task.Spec
		change(&s)
		_, err := Open(s.Digest(), Opening(&s, task.Step, task.Corpus.Manifest(shardTokens)), asked)
		return err
	}
	same := func(*train.Spec) {}
	is := task.Spec.Numerics
	if err := errors.Join(open(is, same), open(0, same)); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*train.Spec){
		"of this build":       same,
		"of another build":    func(s *train.Spec) { s.Numerics = 99 },
		"and a bad schedule":  func(s *train.Spec) { s.Numerics, s.Rate.Kind = 99, "?" },
		"that is left out":    func(s *train.Spec) { s.Numerics = 0 },
		"with a bad schedule": func(s *train.Spec) { s.Rate.Kind = "?" },
	} {
		if err := open(is+1, change); !errors.Is(err, market.ErrNumerics) {
			t.Errorf("a version %s is refused with %v", name, err)
		}
	}
	if err := open(99, func(s *train.Spec) { s.Numerics = 99 }); !errors.Is(err, ErrOpening) {
		t.Errorf("a version that this build does not compute is refused with %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	task, _ := job(f, tiny)
	f.Add(Opening(task.Spec, task.Step, task.Corpus.Manifest(shardTokens)))
	f.Add([]byte{0xa0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := Open(task.Spec.Digest(), b, kernel.Version1); err != nil &&
			!errors.Is(err, ErrOpening) && !errors.Is(err, market.ErrNumerics) {
			t.Fatal(err)
		}
	})
}

// No payload whatever refutes what an honest worker claims.
func FuzzJudge(f *testing.F) {
	task, base := job(f, tiny)
	honest := vouch(f, task, base, unit, nil)
	r := newReferee(task.Spec, task.Step)
	first := func(k program.Kind, name string) int {
		return slices.IndexFunc(task.Step.Ops, func(op program.Operator) bool {
			return op.Kind == k &&
				strings.HasPrefix(op.Name, name)
		})
	}
	var claims []dispute.Claim
	add := func(c dispute.Claim, prove func(int) (canon.Proof, error)) {
		payload, err := honest.Leaf(c, prove)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(len(claims)), payload)
		claims = append(claims, c)
	}
	for _, op := range []int{first(program.Dot, ""), first(program.Constant, ""), first(program.TakeRows, ""),
		first(program.Input, "tokens"), first(program.Input, "m/")} {
		add(lastPart(f, honest.Witness, base, 2, op))
	}
	c, _ := operatorClaim(f, honest.Witness, base, 2, 0, 0)
	ends, _ := honest.Steps([]uint64{0, 3, uint64(task.Spec.Steps)})
	c.Kind, c.After = dispute.Binding, ends[1]
	add(c, nil)
	c.Kind, c.After = dispute.Start, ends[0]
	add(c, nil)
	update, _ := honest.Result(dispute.Update)
	c.Kind, c.Step, c.Prior, c.Index, c.Output = dispute.Update, task.Spec.Steps, ends[2], 1, leaves(update)[1]
	add(c, nil)
	f.Fuzz(func(t *testing.T, i uint8, payload []byte) {
		begin := time.Now()
		ruling, err := r.Judge(claims[int(i)%len(claims)], payload)
		if err == nil && !ruling.Right {
			t.Fatalf("an honest claim was refuted: %s follows", ruling.Computed.Short())
		}
		if err != nil && !errors.Is(err, evidence.ErrPayload) {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Fatalf("took %v", took)
		}
	})
}
