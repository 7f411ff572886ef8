package train

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/starling-network/starling/canon"
)

// Log is what a worker tells people about a unit: the training loss of every inner step. Nothing is decided by it.
type Log struct {
	Round  uint32 `cbor:"1,keyasint"`
	Unit   uint32 `cbor:"2,keyasint"`
	Losses []byte `cbor:"3,keyasint"` // little-endian float32
}

// EncodeLog returns the bytes of a log.
func EncodeLog(round, unit uint32, losses []float32) []byte {
	l := Log{Round: round, Unit: unit}
	for _, x := range losses {
		l.Losses = binary.LittleEndian.AppendUint32(l.Losses, math.Float32bits(x))
	}
	return canon.MustMarshal(l)
}

// DecodeLog returns the losses of a log of so many inner steps. All of them are numbers.
func DecodeLog(b []byte, round, unit, steps uint32) ([]float32, error) {
	var l Log
	if err := canon.Unmarshal(b, &l); err != nil {
		return nil, fmt.Errorf("train: log: %w", err)
	}
	if l.Round != round || l.Unit != unit || len(l.Losses) != 4*int(steps) {
		return nil, fmt.Errorf("train: log of %d steps of unit %d of round %d, want %d of %d of %d", len(l.Losses)/4, l.Unit, l.Round, steps, unit, round)
	}
	out := make([]float32, steps)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(l.Losses[4*i:]))
		if x := float64(out[i]); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("train: log: the loss of step %d is %v", i, x)
		}
	}
	return out, nil
}
