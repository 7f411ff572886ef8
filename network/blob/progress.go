package blob

import (
	"context"
	"fmt"
	"sync"
)

// progress is the part of an Assembly that is the same in every store: which leaves are there.
type progress struct {
	manifest *Manifest

	mu     sync.Mutex
	have   []bool
	left   int
	closed bool
}

func newProgress(m *Manifest) *progress {
	return &progress{manifest: m, have: make([]bool, len(m.Leaves)), left: len(m.Leaves)}
}

// Missing implements Assembly.
func (p *progress) Missing() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	missing := make([]int, 0, p.left)
	for i, have := range p.have {
		if !have {
			missing = append(missing, i)
		}
	}
	return missing
}

// put verifies leaf i, writes it unless it is there, and marks it. Leaves are written one at a time: a leaf that two
// sources deliver at once is written once, and nothing is written after the last.
func (p *progress) put(i int, leaf []byte, write func() error) error {
	if err := p.manifest.Check(i, leaf); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.have[i] {
		return nil
	}
	if err := write(); err != nil {
		return err
	}
	p.have[i] = true
	p.left--
	return nil
}

func (p *progress) complete(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left > 0 {
		return fmt.Errorf("blob: %s: %d of %d: %w", p.manifest.Root, p.left, len(p.have), ErrIncomplete)
	}
	return ctx.Err()
}

// close reports whether this is the first call.
func (p *progress) close() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.closed
	p.closed = true
	return first
}

func checkUse(ctx context.Context, c CID) error {
	if err := Check(c); err != nil {
		return err
	}
	return ctx.Err()
}

func checkPut(ctx context.Context, data []byte) error {
	if int64(len(data)) > MaxBytes {
		return fmt.Errorf("blob: %d bytes: %w", len(data), ErrTooLarge)
	}
	return ctx.Err()
}

func checkLeaf(m *Manifest, i int) error {
	if i < 0 || i >= len(m.Leaves) {
		return fmt.Errorf("blob: %s has %d leaves, no leaf %d", m.Root, len(m.Leaves), i)
	}
	return nil
}

func checkAssemble(ctx context.Context, m *Manifest) error {
	if len(m.Leaves) < 2 {
		return fmt.Errorf("blob: %s has one leaf: store it with Put", m.Root)
	}
	return checkUse(ctx, m.Root)
}
