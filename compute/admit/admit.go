// Package admit decides whether an untrusted program may be computed here: it decodes the bytes of a program, and
// checks the rules of its operators (program.Check) and limits of length, operations and memory. An admitted program
// can be run, traced and divided without harm.
//
// It runs nothing, and does not judge the purpose of a program.
package admit

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/program"
)

// Decode reads the canonical bytes of a program and verifies it. It takes any bytes.
func Decode(data []byte, l program.Limits) (*program.Program, error) {
	if int64(len(data)) > l.MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are allowed", program.ErrLimit, len(data), l.MaxBytes)
	}
	p := new(program.Program)
	if err := canon.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("%w: %w", program.ErrInvalid, err)
	}
	if err := Verify(p, l); err != nil {
		return nil, err
	}
	return p, nil
}

// maxGraded bounds the operators whose rules are compiled: those cost more than their bytes.
const maxGraded = 16

// Verify reports why the program must not be run under the limits: program.ErrInvalid (often in a *program.OpError) or
// program.ErrLimit. A program that passes can neither crash what computes it, nor read or write outside of its own
// memory, nor need more memory than the limit.
func Verify(p *program.Program, l program.Limits) error {
	if err := p.Check(l); err != nil {
		return err
	}
	graded := 0
	for i := range p.Ops {
		if p.Ops[i].Kind == program.Grade {
			graded++
		}
	}
	if graded > maxGraded {
		return fmt.Errorf("%w: %d operators reward answers, at most %d are allowed", program.ErrLimit, graded, maxGraded)
	}
	if n := p.Work(); n > l.MaxFlops {
		return fmt.Errorf("%w: %d operations, at most %d are allowed", program.ErrLimit, n, l.MaxFlops)
	}
	var all uint64
	for i := range p.Ops {
		if all += uint64(p.Ops[i].Out.Bytes()); all > program.MaxSum {
			return fmt.Errorf("%w: its values have %d bytes in sum, and more", program.ErrLimit, all)
		}
	}
	if n := cpu.Memory(p, 1); n > l.MaxMemory {
		return fmt.Errorf("%w: needs %d bytes of memory, at most %d are allowed", program.ErrLimit, n, l.MaxMemory)
	}
	return nil
}
