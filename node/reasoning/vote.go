package reasoning

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-network/starling/web/openai/strategy"
)

// number matches a number as texts write it.
var number = regexp.MustCompile(`-?\d+(?:\.\d+)?`)

// vote lets each model write its answers, and returns the likeliest text of the answer that most of them have (Wang and
// others 2022, "Self-Consistency Improves Chain of Thought Reasoning in Language Models"). Of answers with equal votes
// that with the likeliest text wins.
func (a *attempt) vote(ctx context.Context) (draft, error) {
	n := a.how.Answers * len(a.requests)
	drafts := make([]draft, n)
	err := a.all(ctx, drafts, func(ctx context.Context, i int, d *draft) error {
		r := a.requests[i/a.how.Answers]
		left := a.how.Budget / n
		if r.Max > 0 {
			left = min(left, r.Max)
		}
		return a.extend(ctx, r, d, "", left, mix(r.Seed, uint64(i)<<32))
	})
	if err != nil {
		return draft{}, err
	}
	return a.elect(drafts), nil
}

// elect counts the votes.
func (a *attempt) elect(drafts []draft) draft {
	if len(drafts) == 1 {
		return drafts[0]
	}
	best := map[string]*draft{}
	for i := range drafts {
		d := &drafts[i]
		answer := a.answer(d.shown)
		if b := best[answer]; b == nil || d.likelihood() > b.likelihood() {
			best[answer] = d
		}
		at := slices.IndexFunc(a.votes, func(v strategy.Vote) bool { return v.Answer == answer })
		if at < 0 {
			at, a.votes = len(a.votes), append(a.votes, strategy.Vote{Answer: answer})
		}
		a.votes[at].Count++
	}
	slices.SortStableFunc(a.votes, func(x, y strategy.Vote) int {
		return cmp.Or(y.Count-x.Count, cmp.Compare(best[y.Answer].likelihood(), best[x.Answer].likelihood()))
	})
	return *best[a.votes[0].Answer]
}

// answer is the part of a text that is compared.
func (a *attempt) answer(text string) string {
	text = strings.TrimSpace(text)
	switch a.how.Vote {
	case strategy.VoteNumber:
		if all := number.FindAllString(text, -1); len(all) > 0 {
			return all[len(all)-1]
		}
	case strategy.VoteLine:
		return text[strings.LastIndexByte(text, '\n')+1:]
	}
	return text
}
