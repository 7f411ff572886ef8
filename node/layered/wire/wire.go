// Package wire is the bytes that the front of a model in stages and the holder of a stage exchange: questions of the
// front, each of which has one answer. Both read what a stranger has written, within limits that follow from the model.
//
// It opens no stream and computes nothing.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/compute/tensor"
)

// Protocol is that of the dialogues.
const Protocol = "/starling/stage/1"

// ErrFrame is wrapped by the reasons why bytes are no question, or no answer.
var ErrFrame = errors.New("not a frame of a stage")

// Kinds of questions, and of the answers to them.
const (
	kindRefused byte = iota
	KindHello        // which stage of which model is it?
	KindPass         // continue sequences
	KindAgain        // continue one sequence by several passes, and say the digests of their results
	KindEnd          // forget a sequence
)

// Limits.
const (
	maxReason = 512     // bytes
	MaxAgain  = 64      // passes of one question
	maxStages = 1 << 10 // layers of a model
	rowBytes  = 8 + 4 + 2 + 4
)

// Longest is the number of bytes of the longest question about a model of a width, and of the longest answer.
func Longest(width int) int {
	tokens := max(section.MaxRows, MaxAgain*section.Piece)
	return 64 + section.MaxRows*rowBytes + 4*width*tokens
}

// Hello is what a holder says of itself.
type Hello struct {
	Weights canon.Digest // root of the weights of the whole model
	Stages  int
	Stage   int
}

// Question is a frame of the front. Of the fields those of its kind are set.
type Question struct {
	Kind   byte
	Model  canon.Digest   // KindHello: root of the weights of the model that the front has
	Passes []section.Pass // KindPass: one; KindAgain: of one sequence, one after the other
	ID     uint64         // KindEnd
}

// Answer is a frame of a holder.
type Answer struct {
	Kind    byte
	Hello   Hello
	Hidden  []float32      // KindPass
	Digests []canon.Digest // KindAgain: Digest of the result of each pass
}

// Refused is the answer of a holder that does not do what was asked.
type Refused struct{ Reason string }

// Error implements error.
func (r *Refused) Error() string { return fmt.Sprintf("the holder of the stage refuses: %q", r.Reason) }

// Digest is that of a result of a pass.
func Digest(hidden []float32) canon.Digest {
	return canon.Sum("starling/stage/result/1", floats(hidden))
}

func floats(list []float32) []byte { return tensor.FromF32(list, len(list)).Bytes() }

// Encode is the bytes of a question.
func (q Question) Encode() []byte {
	b := []byte{q.Kind}
	switch q.Kind {
	case KindHello:
		return append(b, q.Model[:]...)
	case KindEnd:
		return binary.LittleEndian.AppendUint64(b, q.ID)
	}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(q.Passes)))
	for _, p := range q.Passes {
		piece := byte(0)
		if p.Piece {
			piece = 1
		}
		b = binary.LittleEndian.AppendUint16(append(b, piece), uint16(len(p.Rows)))
		for _, r := range p.Rows {
			b = binary.LittleEndian.AppendUint64(b, r.ID)
			b = binary.LittleEndian.AppendUint32(b, uint32(r.Start))
			b = binary.LittleEndian.AppendUint16(b, uint16(r.Count))
			b = binary.LittleEndian.AppendUint32(b, uint32(r.Limit))
		}
		b = append(b, floats(p.Hidden)...)
	}
	return b
}

// reader takes fields off the front of bytes; after the first that is missing all are zero.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.failed, r.b = true, nil
		return make([]byte, min(n, 8))
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u8() byte    { return r.take(1)[0] }
func (r *reader) u16() int    { return int(binary.LittleEndian.Uint16(r.take(2))) }
func (r *reader) u32() int    { return int(binary.LittleEndian.Uint32(r.take(4))) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

func (r *reader) digest() (d canon.Digest) {
	copy(d[:], r.take(len(d)))
	return d
}

func (r *reader) floats(n int) []float32 {
	raw := r.take(4 * n)
	if r.failed {
		return nil
	}
	return tensor.CopyF32(raw)
}

// end reports bytes that are missing or left.
func (r *reader) end() error {
	if r.failed || len(r.b) > 0 {
		return fmt.Errorf("%w: %d bytes are left, too short: %t", ErrFrame, len(r.b), r.failed)
	}
	return nil
}

// ReadQuestion reads a question about a model from anybody. Its passes are those of the model (section.Layout.Check).
func ReadQuestion(b []byte, l section.Layout) (q Question, err error) {
	r := &reader{b: b}
	q.Kind = r.u8()
	switch q.Kind {
	case KindHello:
		q.Model = r.digest()
	case KindEnd:
		q.ID = r.u64()
	case KindPass, KindAgain:
		n, most := r.u16(), 1
		if q.Kind == KindAgain {
			most = MaxAgain
		}
		if n < 1 || n > most {
			return q, fmt.Errorf("%w: %d passes, at most %d", ErrFrame, n, most)
		}
		for range n {
			p, err := r.pass(l)
			if err != nil {
				return q, err
			}
			q.Passes = append(q.Passes, p)
			if q.Kind == KindAgain && (len(p.Rows) > 1 || p.Rows[0].ID != q.Passes[0].Rows[0].ID) {
				return q, fmt.Errorf("%w: several sequences", ErrFrame)
			}
		}
	default:
		return q, fmt.Errorf("%w: of kind %d", ErrFrame, q.Kind)
	}
	return q, r.end()
}

// pass reads a pass.
func (r *reader) pass(l section.Layout) (p section.Pass, err error) {
	piece, n := r.u8(), r.u16()
	if piece > 1 || n > section.MaxRows {
		return p, fmt.Errorf("%w: %d sequences, of kind %d", ErrFrame, n, piece)
	}
	p.Piece = piece == 1
	for range n {
		p.Rows = append(p.Rows, section.Row{ID: r.u64(), Start: r.u32(), Count: r.u16(), Limit: r.u32()})
	}
	if err := l.Check(p); err != nil {
		return p, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	p.Hidden = r.floats(p.Tokens() * l.Config.Width)
	return p, nil
}

// Refuse is the bytes of the answer of a holder that does not do what was asked.
func Refuse(reason string) []byte {
	return append([]byte{kindRefused}, reason[:min(len(reason), maxReason)]...)
}

// Encode is the bytes of an answer.
func (a Answer) Encode() []byte {
	b := []byte{a.Kind}
	switch a.Kind {
	case KindHello:
		b = append(b, a.Hello.Weights[:]...)
		b = binary.LittleEndian.AppendUint16(b, uint16(a.Hello.Stages))
		return binary.LittleEndian.AppendUint16(b, uint16(a.Hello.Stage))
	case KindPass:
		return append(b, floats(a.Hidden)...)
	case KindAgain:
		for _, d := range a.Digests {
			b = append(b, d[:]...)
		}
	}
	return b
}

// ReadAnswer reads the answer to a question of a kind from anybody: one with n values of a pass, or n digests. The
// error is a *Refused, or wraps ErrFrame.
func ReadAnswer(b []byte, kind byte, n int) (a Answer, err error) {
	r := &reader{b: b}
	a.Kind = r.u8()
	if !r.failed && a.Kind == kindRefused {
		return a, &Refused{string(r.b[:min(len(r.b), maxReason)])}
	}
	if a.Kind != kind {
		return a, fmt.Errorf("%w: an answer of kind %d to a question of kind %d", ErrFrame, a.Kind, kind)
	}
	switch kind {
	case KindHello:
		a.Hello = Hello{Weights: r.digest(), Stages: r.u16(), Stage: r.u16()}
		if h := a.Hello; h.Stage < 1 || h.Stage > h.Stages || h.Stages > maxStages {
			return a, fmt.Errorf("%w: stage %d of %d", ErrFrame, h.Stage, h.Stages)
		}
	case KindPass:
		a.Hidden = r.floats(n)
	case KindAgain:
		for range n {
			a.Digests = append(a.Digests, r.digest())
		}
	}
	return a, r.end()
}
