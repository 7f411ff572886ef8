package pipeline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/stages/pass"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/protocol/handover"
)

// Message is a frame with the word of its sender, or, without a frame, the word of a receiver about all frames of a
// step.
type Message struct {
	Frame   *pass.Frame
	Voucher handover.Voucher
}

// Clone is the message with values of its own: its sender continues with those that it has.
func (m Message) Clone() Message {
	if m.Frame == nil {
		return m
	}
	f := *m.Frame
	f.Values = slices.Clone(f.Values)
	for i, x := range f.Values {
		f.Values[i] = x.Clone()
	}
	m.Frame = &f
	return m
}

// ErrMessage is wrapped by every reason why bytes are no message of a stage.
var ErrMessage = errors.New("pipeline: not a message of this stage")

// header is a message without the values of its frame, whose sizes the plan says.
type header struct {
	Frame   bool             `cbor:"1,keyasint,omitempty"`
	Step    uint32           `cbor:"2,keyasint,omitempty"`
	Phase   order.Phase      `cbor:"3,keyasint,omitempty"`
	Number  uint32           `cbor:"4,keyasint,omitempty"`
	Voucher handover.Voucher `cbor:"5,keyasint"`
}

// maxHeader is the most bytes of a header.
const maxHeader = 1 << 10

// WriteMessage writes a message: the length of its header in four bytes, the header, and the bytes of the values.
func WriteMessage(w io.Writer, m Message) error {
	h := header{Voucher: m.Voucher}
	if m.Frame != nil {
		h.Frame, h.Step, h.Phase, h.Number = true, m.Frame.Step, m.Frame.Task.Phase, uint32(m.Frame.Task.Number)
	}
	b := canon.MustMarshal(h)
	if _, err := w.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)); err != nil {
		return err
	}
	if m.Frame == nil {
		return nil
	}
	for _, x := range m.Frame.Values {
		if _, err := w.Write(x.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// ReadMessage reads a message from one stage of a plan to another. It takes memory for the values that the plan has,
// and for no others. The error wraps ErrMessage, or is one of the reader.
func ReadMessage(r io.Reader, p *stages.Plan, from, to int) (m Message, err error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return m, err
	}
	n := binary.LittleEndian.Uint32(size[:])
	if n > maxHeader {
		return m, fmt.Errorf("%w: a header of %d bytes, at most %d", ErrMessage, n, maxHeader)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return m, err
	}
	var h header
	if err := canon.Unmarshal(b, &h); err != nil {
		return m, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	m.Voucher = h.Voucher
	if !h.Frame {
		return m, nil
	}
	m.Frame = &pass.Frame{Step: h.Step, Task: order.Task{Phase: h.Phase, Number: int(h.Number)}}
	expected := p.Frame(from, to, m.Frame.Task)
	if len(expected) == 0 {
		return m, fmt.Errorf("%w: stage %d sends nothing to stage %d after %v", ErrMessage, from, to, m.Frame.Task)
	}
	for _, t := range expected {
		x := tensor.New(t.Shape)
		if _, err := io.ReadFull(r, x.Bytes()); err != nil {
			return m, err
		}
		m.Frame.Values = append(m.Frame.Values, x)
	}
	return m, nil
}
