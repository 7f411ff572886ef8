// Package handover is what two neighbours in a pipeline of stages sign about the values that one hands over to the
// other, and which stage is late when they do not reach the end. It moves digests: it knows no tensors, no keys and
// no clock.
//
// The sender signs, with every frame, the digest of all frames of the link so far; the receiver signs the same digest
// once it has taken the frames of a step, and computes nothing from a frame that the sender has not signed. So when
// they commit to different values, at least one of them has signed other values than it commits to, and the other can
// show that.
package handover

import (
	"encoding/binary"
	"slices"

	"github.com/starling-network/starling/canon"
)

// Side is an end of a link.
type Side uint8

// The sides. The numbers are signed.
const (
	None     Side = 0
	Sender   Side = 1
	Receiver Side = 2
)

// String names the side.
func (s Side) String() string { return [...]string{"neither", "sender", "receiver"}[min(s, 2)] }

// Link is the frames from one stage to another in a round of a replica.
type Link struct {
	Job      canon.Digest `cbor:"1,keyasint"` // with the attempt, as Of names both
	Round    uint32       `cbor:"2,keyasint"`
	Replica  uint32       `cbor:"3,keyasint"`
	From     uint32       `cbor:"4,keyasint"` // stage
	To       uint32       `cbor:"5,keyasint"`
	Sender   string       `cbor:"6,keyasint"` // account that holds the stage From
	Receiver string       `cbor:"7,keyasint"`
}

// Of names an attempt of a replica in a run: Link.Job is that. A signature of another attempt shows nothing.
func Of(job string, attempt uint32) canon.Digest {
	return canon.Sum("starling/handover/attempt/1", []byte(job), binary.LittleEndian.AppendUint32(nil, attempt))
}

// Head binds all frames of a link up to one. The zero value is that of none.
type Head struct {
	Frames uint64       `cbor:"1,keyasint"`
	Chain  canon.Digest `cbor:"2,keyasint"`
}

// After is the head after one more frame: of a task of a step, with values that have these roots, in order.
func (h Head) After(step uint32, phase uint8, number uint32, roots []canon.Digest) Head {
	return Head{Frames: h.Frames + 1, Chain: canon.Hash("starling/handover/frame/1", struct {
		Before Head           `cbor:"1,keyasint"`
		Step   uint32         `cbor:"2,keyasint"`
		Phase  uint8          `cbor:"3,keyasint"`
		Number uint32         `cbor:"4,keyasint"`
		Roots  []canon.Digest `cbor:"5,keyasint"`
	}{h, step, phase, number, roots})}
}

// Statement is what a side signs about a head of a link.
func Statement(l Link, h Head, by Side) []byte {
	d := canon.Hash("starling/handover/statement/1", struct {
		Link Link `cbor:"1,keyasint"`
		Head Head `cbor:"2,keyasint"`
		By   Side `cbor:"3,keyasint"`
	}{l, h, by})
	return d[:]
}

// Voucher is a signed head. Of a link it is known whose.
type Voucher struct {
	Head      Head   `cbor:"1,keyasint"`
	By        Side   `cbor:"2,keyasint"`
	Signature []byte `cbor:"3,keyasint"`
}

// Progress is how far a link is, as its sides have signed: how many frames the sender has signed that are known, and
// how many the receiver has taken.
type Progress struct{ Signed, Taken uint64 }

// Stalled lists the stages that could continue and do not. A stage could continue if its neighbours have taken all that
// it has sent, and it has taken all that it needs for its next frame; so could a receiver that does not take a frame
// which the sender has shown. need is how many frames of each link into a stage it needs before it sends a number of
// frames on a link out of it; last is the number of frames of a link.
func Stalled(links []Link, progress func(Link) Progress, last func(Link) uint64,
	need func(out Link, frames uint64, in Link) uint64) (stages []uint32) {
	stalled := func(stage uint32) {
		if !slices.Contains(stages, stage) {
			stages = append(stages, stage)
		}
	}
	for _, l := range links {
		p := progress(l)
		if p.Taken < p.Signed {
			stalled(l.To)
			continue
		}
		if p.Signed >= last(l) {
			continue
		}
		ready := true
		for _, in := range links {
			if in.To == l.From && progress(in).Taken < need(l, p.Signed+1, in) {
				ready = false
			}
		}
		if ready {
			stalled(l.From)
		}
	}
	slices.Sort(stages)
	return stages
}
