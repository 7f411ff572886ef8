package handed_test

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/handed"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/handover"
)

// pair is a plan of two stages, each with one weight, that hand over one value.
func pair(t testing.TB) *stages.Plan {
	t.Helper()
	p := &stages.Plan{Transfers: []stages.Transfer{{Value: 3, To: 1, After: order.Task{Phase: order.Forward},
		Shape: tensor.Make(tensor.Float32, 2)}}}
	for range 2 {
		b := program.NewBuilder()
		w := b.Input("p/w", tensor.Make(tensor.Float32, 2))
		b.Output("p/w", w)
		b.Input("x/3", tensor.Make(tensor.Float32, 2))
		b.Output("x/3", w)
		whole, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		p.Stages = append(p.Stages, stages.Stage{Whole: whole})
	}
	return p
}

func signs(statement, signature []byte) bool { return string(statement) == string(signature) }

func shown(by handover.Side) (handed.Evidence, canon.Digest) {
	e := handed.Evidence{Link: handover.Link{To: 1}, Step: 4, State: []canon.Digest{canon.Sum("w"), canon.Sum("denied")},
		Frames: []handed.Frame{{Phase: order.Forward, Roots: []canon.Digest{canon.Sum("signed")}}}}
	h := e.Before.After(4, uint8(order.Forward), 0, e.Frames[0].Roots)
	e.Voucher = handover.Voucher{Head: h, By: by, Signature: handover.Statement(e.Link, h, by)}
	return e, train.StateRoot(5, e.State)
}

func TestJudge(t *testing.T) {
	for _, by := range []handover.Side{handover.Sender, handover.Receiver} {
		e, committed := shown(by)
		if v, err := handed.Judge(pair(t), e, committed, signs); err != nil || v != 3 {
			t.Errorf("the %s denies value 3: %d, %v", by, v, err)
		}
		for name, spoil := range map[string]func(*handed.Evidence){
			"nothing is denied":      func(e *handed.Evidence) { e.State[1] = e.Frames[0].Roots[0] },
			"another side":           func(e *handed.Evidence) { e.Voucher.By = handover.None },
			"another link":           func(e *handed.Evidence) { e.Link.Round++ },
			"no such stage":          func(e *handed.Evidence) { e.Link.From = 9 },
			"another step":           func(e *handed.Evidence) { e.Step++ },
			"frames before":          func(e *handed.Evidence) { e.Before.Frames++ },
			"no frame":               func(e *handed.Evidence) { e.Frames = nil },
			"a frame of two values":  func(e *handed.Evidence) { e.Frames[0].Roots = append(e.Frames[0].Roots, canon.Digest{}) },
			"a task of the backward": func(e *handed.Evidence) { e.Frames[0].Phase = order.Backward },
			"a short state":          func(e *handed.Evidence) { e.State = e.State[:1] },
			"a forged signature":     func(e *handed.Evidence) { e.Voucher.Signature = []byte("x") },
		} {
			e, _ := shown(by)
			spoil(&e)
			if _, err := handed.Judge(pair(t), e, train.StateRoot(5, e.State), signs); !errors.Is(err, evidence.ErrPayload) {
				t.Errorf("%s, %s: %v", by, name, err)
			}
		}
	}
	if _, err := handed.Decode(make([]byte, 3<<20)); !errors.Is(err, evidence.ErrTooLarge) {
		t.Errorf("3 MiB: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	e, committed := shown(handover.Sender)
	f.Add(e.Encode())
	p := pair(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := handed.Decode(data)
		if err != nil {
			return
		}
		if string(e.Encode()) != string(data) {
			t.Fatal("accepted bytes that Encode does not produce")
		}
		if v, err := handed.Judge(p, e, committed, signs); err == nil && v != 3 {
			t.Fatalf("value %d", v)
		}
	})
}
