package reasoning

import (
	"cmp"
	"context"
	"slices"

	"github.com/starling-network/starling/web/openai/strategy"
)

// search writes an answer step by step: after each step it continues the beginnings whose tokens are the likeliest on
// average, each by several steps that are drawn (a beam search over steps). The answer is the likeliest text that its
// model ended, or the likeliest text if none was ended.
func (a *attempt) search(ctx context.Context, s strategy.Search) (draft, error) {
	r := a.requests[0]
	beams := make([]draft, 1)
	for step := range s.Steps {
		left := a.how.Budget - a.tokens
		var next, open []draft
		for _, b := range beams {
			if b.finish != "" {
				next = append(next, b)
				continue
			}
			for range s.Branches {
				open = append(open, b)
			}
		}
		if len(open) == 0 || left < len(open) {
			break
		}
		err := a.all(ctx, open, func(ctx context.Context, i int, d *draft) error {
			most := left / len(open)
			if r.Max > 0 {
				most = min(most, r.Max-d.tokens)
			}
			return a.extend(ctx, r, d, s.Separator, most, mix(r.Seed, uint64(step)<<32+uint64(i)<<16))
		})
		if err != nil {
			return draft{}, err
		}
		beams = likeliest(append(next, open...), s.Beams)
	}
	best := beams[0]
	for _, b := range beams {
		if b.finish == "stop" {
			best = b
			break
		}
	}
	if best.finish == "" {
		best.finish = "length"
	}
	return best, nil
}

// likeliest returns the n likeliest of different drafts, the likeliest first.
func likeliest(drafts []draft, n int) (kept []draft) {
	slices.SortStableFunc(drafts, func(x, y draft) int { return cmp.Compare(y.likelihood(), x.likelihood()) })
	seen := map[string]bool{}
	for _, d := range drafts {
		if key := d.finish + "\x00" + d.text; !seen[key] && len(kept) < n {
			seen[key] = true
			kept = append(kept, d)
		}
	}
	return kept
}
