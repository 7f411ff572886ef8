package layered

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/node/layered/wire"
)

// Run continues sequences by the layers of all stages, or of all but those that a sequence leaves out.
func (l *Line) Run(p section.Pass) ([]float32, error) {
	for _, r := range p.Rows {
		if r.Start == 0 {
			delete(l.without, r.ID)
		}
	}
	for _, s := range l.stages {
		hidden, err := l.pass(s, p)
		if err != nil {
			return nil, fmt.Errorf("stage %d: %w", s.number, err)
		}
		p.Hidden = hidden
	}
	return p.Hidden, nil
}

// Left are the stages that a sequence leaves out, ascending; nil: none.
func (l *Line) Left(id uint64) []int { return slices.Clone(l.without[id]) }

// pass continues sequences by one stage, but for those that leave it out: their hidden states stay as they are. A
// sequence that has left out a stage once does so to its end, as the stage has not all of its keys and values. The last
// stage is never left out: its result is not the residual stream, but what the output layer reads.
func (l *Line) pass(s *stage, p section.Pass) ([]float32, error) {
	for {
		some := section.Pass{Piece: p.Piece}
		out := make([]bool, len(p.Rows))
		rest, width := p.Hidden, l.Layout.Config.Width
		for i, r := range p.Rows {
			if out[i] = l.leaves(s.number, r.ID); !out[i] {
				some.Rows, some.Hidden = append(some.Rows, r), append(some.Hidden, rest[:r.Count*width]...)
			}
			rest = rest[r.Count*width:]
		}
		switch len(some.Rows) {
		case 0:
			return l.merge(p, out, nil), nil
		case len(p.Rows):
			some = p
		}
		hidden, err := l.through(s, some)
		if err == nil {
			return l.merge(p, out, hidden), nil
		}
		if !gone(err) || !l.miss(s.number) {
			return nil, err
		}
		for _, r := range some.Rows {
			if !l.allowed(append(l.Left(r.ID), s.number)) {
				return nil, err
			}
		}
	}
}

// gone reports whether no holder of a stage answered, and none did and refused.
func gone(err error) bool {
	var told *wire.Refused
	return errors.Is(err, ErrNoHolder) && !errors.As(err, &told) && !errors.Is(err, errDiffers)
}

// merge is the result of a stage for all rows: that of the stage, or its input for rows that leave it out.
func (l *Line) merge(p section.Pass, out []bool, computed []float32) []float32 {
	if !slices.Contains(out, true) {
		return computed
	}
	all, in := make([]float32, 0, len(p.Hidden)), p.Hidden
	for i, r := range p.Rows {
		n := r.Count * l.Layout.Config.Width
		if out[i] {
			all = append(all, in[:n]...)
		} else {
			all, computed = append(all, computed[:n]...), computed[n:]
		}
		in = in[n:]
	}
	return all
}

// leaves reports whether a sequence leaves out a stage, from now on if it is missing.
func (l *Line) leaves(stage int, id uint64) bool {
	if slices.Contains(l.without[id], stage) {
		return true
	}
	l.mu.Lock()
	missing := slices.Contains(l.missing, stage)
	l.mu.Unlock()
	more := append(l.Left(id), stage)
	if !missing || !l.allowed(more) {
		return false
	}
	slices.Sort(more)
	l.without[id] = more
	return true
}

// allowed reports whether a text may continue without all of some stages.
func (l *Line) allowed(stages []int) bool { return l.Skips.Stages(l.Layout, stages...) }

// miss has sequences leave out a stage that no holder answers for; false: none may.
func (l *Line) miss(stage int) bool {
	if !l.allowed([]int{stage}) || l.ctx.Err() != nil {
		return false
	}
	l.mu.Lock()
	known := slices.Contains(l.missing, stage)
	if !known {
		l.missing = append(l.missing, stage)
	}
	l.mu.Unlock()
	if !known {
		l.Log.Warn("a stage is left out: no holder of it answers", "stage", stage)
	}
	return true
}

// watch looks for holders of stages that are left out, until the line is closed.
func (l *Line) watch() {
	every := time.NewTicker(l.Look)
	defer every.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-every.C:
			l.look()
		}
	}
}

// look asks the holders of stages that are left out. New sequences pass those of which one answers.
func (l *Line) look() {
	l.mu.Lock()
	missing := slices.Clone(l.missing)
	l.mu.Unlock()
	for _, stage := range missing {
		for _, h := range l.candidates(stage) {
			talk, number, err := l.greet(l.ctx, h)
			if err != nil {
				continue
			}
			talk.Close()
			if number != stage {
				continue
			}
			l.mu.Lock()
			h.failures, h.until = 0, time.Time{}
			l.missing = slices.DeleteFunc(l.missing, func(n int) bool { return n == stage })
			l.mu.Unlock()
			l.Log.Info("a stage is passed again", "stage", stage, "holder", h.addr)
			break
		}
	}
}
