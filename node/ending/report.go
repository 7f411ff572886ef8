package ending

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/web/report"
)

// Report is what there is to say of a run that is over.
func (e State) Report(s *rundir.Summary) report.Report {
	halted := ""
	if e.Run.Phase == progress.Halted {
		halted = e.Run.Why
	}
	r := BriefReport(s, halted, e.Metrics)
	r.Job, r.Earnings, r.Audits = reportJob(e.CompiledJob), earnings(e.Books), audits(e.Books)
	r.Disputes = e.reportDisputes()
	for _, l := range e.Lines {
		p := report.Checkpoint{Round: int(l.Round), StateRoot: l.StateRoot.String(), Members: len(e.Run.Members)}
		for _, m := range l.Signers {
			p.Signers = append(p.Signers, m.ID)
		}
		r.Lineage = append(r.Lineage, p)
	}
	return r
}

// BriefReport is the part of a report that follows from the summary of a run, from why it ended before its last round
// ("": it did not) and from its metrics.
func BriefReport(s *rundir.Summary, halted string, metrics []rundir.Metric) report.Report {
	r := report.Report{Job: report.Job{Name: s.Name, ID: s.Job}, Summary: reportSummary(s, halted)}
	for _, m := range metrics {
		if m.Kind == "step" {
			r.Train = append(r.Train, report.Point{Step: int(m.Step), Value: m.Loss})
		}
		if m.EvalLoss != nil {
			r.Eval = append(r.Eval, report.Point{Step: int(m.Step), Value: *m.EvalLoss})
		}
		if m.Kind == "round" && m.Round > 0 {
			r.Rounds = append(r.Rounds, report.Round{
				Round: int(m.Round), Workers: m.Workers, BytesUp: m.BytesUp, BytesDown: m.BytesDown, Seconds: m.Seconds,
				Loss: m.Loss, EvalLoss: orNaN(m.EvalLoss),
			})
		}
	}
	return r
}

// orNaN is a loss, NaN if there is none.
func orNaN(loss *float64) float64 {
	if loss == nil {
		return math.NaN()
	}
	return *loss
}

// vocabulary is how many different tokens the data may have.
func vocabulary(b *prepare.CompiledJob) int {
	if b.Tokenizer == nil {
		return int(b.Corpus.Vocab)
	}
	return b.Tokenizer.VocabSize()
}

func reportJob(b *prepare.CompiledJob) report.Job {
	j, s := b.Job, b.Spec
	x := s.Exchange
	facts := []report.Fact{
		{Name: "Model", Value: fmt.Sprintf("%s, %d parameters", b.Model.Architecture(), b.Model.Parameters())},
		{Name: "Data", Value: fmt.Sprintf("%d tokens to train on, %d held out, vocabulary of %d", b.Corpus.Train.Len(),
			b.Corpus.Val.Len(), vocabulary(b))},
		{Name: "Rounds", Value: fmt.Sprintf("%d of %d inner steps, %d units of %d x %d tokens a step", s.Rounds, s.Steps,
			s.Units, s.Batch, s.Length)},
		{Name: "Inner optimizer", Value: fmt.Sprintf("AdamW, %s rate up to %g", s.Rate.Kind, s.Rate.Peak)},
		{Name: "Exchange", Value: fmt.Sprintf("%s updates, %s, outer %s", x.Codec, strings.ReplaceAll(x.Rule, "_", " "),
			moving(x))},
		{Name: "Audit rate", Value: fmt.Sprintf("%g %% of the units at least, all of a new worker's%s",
			100*j.Strategy.Verification.Fraction,
			map[bool]string{true: ", up to a drawn segment"}[j.Strategy.Verification.Audit == "partial"])},
		{Name: "Program", Value: s.Program.String()},
	}
	if p := j.Parallel; p.On() {
		facts = slices.Insert(facts, 3, report.Fact{Name: "Stages", Value: fmt.Sprintf(
			"%d of a replica; replicas: %d, microbatches a step: %d%s", p.Stages, p.Replicas, p.Microbatches, p.Words())})
	}
	return report.Job{Name: j.Name, ID: b.JobID(), Facts: facts}
}

func reportSummary(s *rundir.Summary, halted string) report.Summary {
	status := cmp.Or(halted, "finished")
	known := func(x float64) float64 {
		if x == 0 {
			return math.NaN()
		}
		return x
	}
	return report.Summary{
		Status: status, Rounds: s.Rounds, Workers: s.Workers, Steps: s.Steps, Tokens: s.Tokens,
		FirstEvalLoss: known(s.FirstEvalLoss), FinalEvalLoss: known(s.FinalEvalLoss),
		FinalMeasured: s.FinalMeasured, BitsPerByte: s.BitsPerByte, Seconds: s.Seconds, BytesUp: s.BytesUp,
		BytesDown: s.BytesDown, Audits: s.Audits,
		PlantsShown: s.Plants.Shown, PlantsCaught: s.Plants.Caught, PlantsPassed: s.Plants.Passed,
		Coin: s.Coin, BudgetUzen: s.BudgetUzen, PaidUzen: s.PaidUzen, FeeUzen: s.FeeUzen, RefundedUzen: s.RefundedUzen,
		SlashedUzen: s.SlashedUzen, StateRoot: s.StateRoot.String(),
	}
}

// earnings groups the receipts by account, members first.
func earnings(k Books) []report.Earning {
	var out []report.Earning
	index, lost := map[string]int{}, map[string][]reward.Receipt{}
	for _, m := range k.Run.Members {
		index[m.ID] = len(out)
		out = append(out, report.Earning{Participant: m.ID, Role: m.Role.String()})
	}
	var paid coin.Coin // the coin of the job
	for _, r := range k.Receipts {
		if r.Kind == reward.Refund {
			paid = r.Coin
		}
	}
	for _, r := range k.Receipts {
		i, ok := index[r.Who]
		if !ok {
			i = len(out)
			index[r.Who] = i
			name := "consumer"
			if r.Who == reward.CommunityPool {
				name = "chain"
			}
			out = append(out, report.Earning{Participant: r.Who, Role: name})
		}
		line := report.Receipt{Round: int(r.Round) + 1, For: subject(k, r), Uzen: r.Amount, Reason: reward.Reason(r),
			Fix: r.Fix}
		if r.Kind == reward.Slash {
			lost[r.Who] = append(lost[r.Who], r)
			out[i].Slashed, line.Uzen = Slashed(lost[r.Who]), 0
		}
		if r.Coin != paid { // a part of a stake in ZEN, in a job in another coin
			line.Uzen, line.For = 0, line.For+", "+r.Coin.Text(r.Amount)
		}
		out[i].Receipts = append(out[i].Receipts, line)
	}
	return out
}

// Slashed is the sum of receipts of slashes in each coin, with the names of the coins.
func Slashed(receipts []reward.Receipt) string {
	var coins []coin.Coin
	sums := map[coin.Coin]uint64{}
	for _, r := range receipts {
		if sums[r.Coin] += r.Amount; !slices.Contains(coins, r.Coin) {
			coins = append(coins, r.Coin)
		}
	}
	texts := make([]string, len(coins))
	for i, c := range coins {
		texts[i] = c.Text(sums[c])
	}
	return strings.Join(texts, " and ")
}

func subject(k Books, r reward.Receipt) string {
	unit := "work unit " + unitName(k, r.Unit)
	switch r.Kind {
	case reward.Work:
		return unit
	case reward.Audit:
		return "audit of " + unit
	case reward.Refund:
		return "the budget that was not spent"
	}
	return fmt.Sprintf("%s over %s", r.Kind, unit)
}

// unitName is the number of a unit, and in a job in stages which of them it is.
func unitName(k Books, unit uint32) string {
	if stages := k.Run.Terms.Pipeline.Stages(); stages > 1 {
		return fmt.Sprintf("%d (stage %d of replica %d)", unit, unit%stages, unit/stages)
	}
	return fmt.Sprint(unit)
}

func audits(k Books) []report.Audit {
	var out []report.Audit
	for _, r := range k.Receipts {
		if r.Kind != reward.Audit {
			continue
		}
		out = append(out, report.Audit{
			Round: int(r.Round) + 1, Worker: workerOf(k, r), Verifier: r.Who,
			Sample:  fmt.Sprintf("unit %s, all steps", unitName(k, r.Unit)),
			Outcome: outcomes[reward.AuditOutcome(r.Reason)], Note: reward.Reason(r),
		})
	}
	return out
}

// outcomes are those of audits, for people.
var outcomes = map[reward.Outcome]string{reward.Passed: "same bits", reward.Found: "a fault found",
	reward.Moot: "moot", reward.Missed: "not answered"}

func passed(audit reward.Receipt) bool {
	return reward.AuditOutcome(audit.Reason) == reward.Passed
}

// workerOf finds whose work an audit was about: of a failed one, who the dispute was with; else who was paid for the
// unit.
func workerOf(k Books, audit reward.Receipt) string {
	for _, g := range k.disputes {
		if c := g.Config; !passed(audit) && c.Round == audit.Round && c.Unit == audit.Unit && c.Challenger == audit.Who {
			return c.Asserter
		}
	}
	for _, r := range k.Receipts {
		if r.Kind == reward.Work && r.Round == audit.Round && r.Unit == audit.Unit && !r.OfDispute() {
			return r.Who
		}
	}
	return ""
}

func (e State) reportDisputes() []report.Dispute {
	var out []report.Dispute
	for _, g := range e.disputes {
		line := rundir.NewDisputeLine(g, e.RefereeTime(g))
		d := report.Dispute{
			Round: int(line.Round), Worker: line.Worker, Challenger: line.Challenger,
			Verdict: strings.TrimSuffix(strings.ReplaceAll(line.Verdict, "_", " ")+": "+line.Reason, ": "),
			Leaf:    leafText(line),
		}
		d.Guilty = g.Verdict != nil && g.Verdict.AsserterLies
		for _, r := range g.Log {
			d.Moves = append(d.Moves, report.Move{By: r.Party.String(), What: g.Text(r, e.Names())})
		}
		var of []reward.Receipt
		for _, r := range e.Receipts {
			if r.Kind == reward.Slash && r.Round == g.Config.Round && r.Unit == g.Config.Unit &&
				(len(of) == 0 || r.Who == of[0].Who && r.Coin != of[0].Coin) { // a part of each stake of one account
				of = append(of, r)
			}
		}
		d.Slashed = Slashed(of)
		out = append(out, d)
	}
	return out
}

// leafText is what a dispute cost, for the table of the report.
func leafText(l rundir.DisputeLine) string {
	took := ""
	if l.LeafMS > 0 {
		took = fmt.Sprintf(" in %.3g ms", l.LeafMS)
	}
	moves := fmt.Sprintf("%d moves", l.Moves)
	if l.Moves == 1 {
		moves = "1 move"
	}
	if l.Leaf == "" {
		return fmt.Sprintf("Settled after %s: nothing had to be recomputed.", moves)
	}
	return fmt.Sprintf("The referee recomputed one %s from %d bytes of input%s, after %s and %d bytes of hashes.", l.Leaf,
		l.LeafBytes, took, moves, l.HashBytes)
}

// moving says how the outer optimizer of a job moves the checkpoint.
func moving(x train.Exchange) string {
	switch x.Outer {
	case outer.Nesterov:
		return fmt.Sprintf("%s at %g, momentum %g", x.Outer, x.Rate, x.Momentum)
	case outer.Adam, outer.Yogi:
		return fmt.Sprintf("%s at %g, betas %g and %g, eps %g", x.Outer, x.Rate, x.Momentum, x.Decay, x.Eps)
	}
	return fmt.Sprintf("%s at %g", x.Outer, x.Rate)
}
