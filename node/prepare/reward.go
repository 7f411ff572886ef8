package prepare

import (
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/node/prepare/rules"
)

// ruled makes the rule that rewards answers ready, if the job has one. The error is a *problem.ErrorList.
func (b *compilation) ruled() (err error) {
	if b.Job.Task != spec.TaskGRPO || !b.Job.Reward.Ruled() {
		return nil
	}
	b.rule, b.ends, err = rules.Make(b.Job, b.Tokenizer, b.firstRows())
	return err
}

// Rule is the bytes of the rule that rewards the answers of the job, as grade.Decode reads them; nil: there is none.
func (b *CompiledJob) Rule() []byte { return b.rule }

// firstRows are the tokens of the first examples.
func (b *compilation) firstRows() (rows [][]int32) {
	for i := range min(rules.Tries, b.Corpus.Train.Len()/b.Example) {
		row := make([]int32, b.Example)
		for k := range row {
			row[k] = int32(b.Corpus.Train.At(i*b.Example + k))
		}
		rows = append(rows, row)
	}
	return rows
}
