package pipeline_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/stages/pass"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/protocol/handover"
	"github.com/starling-network/starling/role/pipeline"
)

// plan is of two stages that hand over one value of six elements, forward.
func plan() *stages.Plan {
	return &stages.Plan{Micro: 1, Stages: make([]stages.Stage, 2), Transfers: []stages.Transfer{{Value: 3, To: 1,
		After: order.Task{Phase: order.Forward}, Shape: tensor.Make(tensor.Float32, 2, 3)}}}
}

func message() pipeline.Message {
	return pipeline.Message{
		Frame: &pass.Frame{Step: 2, Task: order.Task{Phase: order.Forward},
			Values: []*tensor.Tensor{tensor.FromF32([]float32{1, 2, 3, 4, 5, 6}, 2, 3)}},
		Voucher: handover.Voucher{Head: handover.Head{Frames: 3}, By: handover.Sender, Signature: []byte("signature")},
	}
}

func TestMessages(t *testing.T) {
	for _, m := range []pipeline.Message{message(), {Voucher: message().Voucher}} {
		var b bytes.Buffer
		if err := pipeline.WriteMessage(&b, m); err != nil {
			t.Fatal(err)
		}
		whole := bytes.Clone(b.Bytes())
		got, err := pipeline.ReadMessage(&b, plan(), 0, 1)
		if err != nil || (got.Frame == nil) != (m.Frame == nil) || string(got.Voucher.Signature) != "signature" {
			t.Fatalf("%+v, %v", got, err)
		}
		if m.Frame != nil && (got.Frame.Step != 2 || got.Frame.Values[0].Root() != m.Frame.Values[0].Root()) {
			t.Errorf("%+v", got.Frame)
		}
		if _, err := pipeline.ReadMessage(bytes.NewReader(whole[:len(whole)-1]), plan(), 0, 1); !errors.Is(err,
			io.ErrUnexpectedEOF) {
			t.Errorf("cut off: %v", err)
		}
	}
	var b bytes.Buffer
	if err := pipeline.WriteMessage(&b, message()); err != nil {
		t.Fatal(err)
	}
	if _, err := pipeline.ReadMessage(bytes.NewReader(b.Bytes()), plan(), 1, 0); !errors.Is(err, pipeline.ErrMessage) {
		t.Errorf("to a stage that the plan sends nothing: %v", err)
	}
	if _, err := pipeline.ReadMessage(bytes.NewReader([]byte{0, 0, 0, 1}), plan(), 0, 1); !errors.Is(err,
		pipeline.ErrMessage) {
		t.Errorf("a header of 16 MiB: %v", err)
	}
}

func FuzzReadMessage(f *testing.F) {
	for _, m := range []pipeline.Message{message(), {Voucher: message().Voucher}} {
		var b bytes.Buffer
		if err := pipeline.WriteMessage(&b, m); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		m, err := pipeline.ReadMessage(r, plan(), 0, 1)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := pipeline.WriteMessage(&b, m); err != nil || !bytes.HasPrefix(data, b.Bytes()) {
			t.Fatalf("read bytes that WriteMessage does not make: %v", err)
		}
	})
}
