// Package unitlog is the report of a unit for people: the losses and the norms of the gradients of its steps. No
// decision depends on it.
package unitlog

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/starling-network/starling/canon"
)

// Log is a worker's report of a unit for people: the training loss and the norm of the gradient of every inner step.
// It is not verified, and no decision depends on it.
type Log struct {
	Round  uint32 `cbor:"1,keyasint"`
	Unit   uint32 `cbor:"2,keyasint"`
	Losses []byte `cbor:"3,keyasint"`           // little-endian float32
	Norms  []byte `cbor:"4,keyasint,omitempty"` // the same; none where the arithmetic does not tell them
}

// Encode returns the bytes of a log. norms has as many elements as losses, or none.
func Encode(round, unit uint32, losses, norms []float32) []byte {
	return canon.MustMarshal(Log{Round: round, Unit: unit, Losses: littleEndian(losses), Norms: littleEndian(norms)})
}

func littleEndian(list []float32) (b []byte) {
	for _, x := range list {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// Decode returns the losses and the norms of the gradients of a log of steps inner steps. All losses are finite.
// norms is nil if the log has none; a norm may be NaN or infinite, because a gradient may overflow where its loss
// does not.
func Decode(b []byte, round, unit, steps uint32) (losses, norms []float32, err error) {
	var l Log
	if err := canon.Unmarshal(b, &l); err != nil {
		return nil, nil, fmt.Errorf("train: log: %w", err)
	}
	if l.Round != round || l.Unit != unit || len(l.Losses) != 4*int(steps) || len(l.Norms) != 0 &&
		len(l.Norms) != len(l.Losses) {
		return nil, nil, fmt.Errorf("train: log of %d losses and %d norms of unit %d of round %d, want %d of %d of %d",
			len(l.Losses)/4, len(l.Norms)/4, l.Unit, l.Round, steps, unit, round)
	}
	losses, norms = floats(l.Losses), floats(l.Norms)
	for i, x := range losses {
		if x-x != 0 {
			return nil, nil, fmt.Errorf("train: log: the loss of step %d is %v", i, x)
		}
	}
	return losses, norms, nil
}

func floats(b []byte) (list []float32) {
	for ; len(b) >= 4; b = b[4:] {
		list = append(list, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return list
}
