package torch

import (
	"fmt"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// A child computes no Grade: rules read the vocabulary, and functions of the job's author are code of a stranger. It
// writes the operands to the memory that is shared and asks for the reward, which the kernels compute.

// graded is a Grade of a program, and where its operands and its result lie in the memory that is shared.
type graded struct {
	Op      int    `json:"op"`
	Rows    *place `json:"rows"`    // int32 [N, L]
	Answers *place `json:"answers"` // int32 [M, T]
	Reward  *place `json:"reward"`  // float32 [M]
}

// maxGrades is how often a step may ask for each reward: a step of the owner's may compute some part twice.
const maxGrades = 8

// addGrades lays out the operands and results of the Grades of a program.
func (l *layout) addGrades(p *program.Program) {
	for i, op := range p.Ops {
		if op.Kind != program.Grade {
			continue
		}
		rows, answers := l.add("rows", p.Ops[op.In[0]].Out), l.add("answers", p.Ops[op.In[1]].Out)
		reward := l.add("reward", op.Out)
		l.Grades = append(l.Grades, graded{i, &rows, &answers, &reward})
	}
}

// graders compute the Grades of a task, by the number of the operator.
func graders(t *train.Task) (map[int]*cpu.Exec, error) {
	all := map[int]*cpu.Exec{}
	for i, op := range t.Step.Ops {
		if op.Kind != program.Grade {
			continue
		}
		alone := op
		alone.In = []int32{0, 1}
		exec, err := cpu.Compile(&program.Program{Numerics: t.Step.Numerics, Ops: []program.Operator{
			{Kind: program.Input, Name: "rows", Out: t.Step.Ops[op.In[0]].Out},
			{Kind: program.Input, Name: "answers", Out: t.Step.Ops[op.In[1]].Out}, alone},
			Outputs: []program.Output{{Name: "reward", Value: 2}}}, t.Exec.Threads())
		if err != nil {
			return nil, fmt.Errorf("torch: the reward of operator %d: %w", i, err)
		}
		all[i] = exec
	}
	return all, nil
}

// stepped asks for a step, and computes the rewards that the child asks for meanwhile.
func (x *Executor) stepped(r request) (reply, error) {
	for range 1 + maxGrades*len(x.layout.Grades) {
		got, err := x.child.ask(r, "stepped", "grade")
		if err != nil || got.Type == "stepped" {
			return got, err
		}
		if err := x.grade(got.Op); err != nil {
			return reply{}, x.child.wrong(codeProtocol, "the child asks for a reward that cannot be computed", err)
		}
		r = request{Type: "graded"}
	}
	return reply{}, x.child.wrong(codeProtocol, "the child asks for rewards again and again", nil)
}

// grade computes the rewards of answers that the child has written.
func (x *Executor) grade(op int) error {
	for _, g := range x.layout.Grades {
		if g.Op != op {
			continue
		}
		if x.graders == nil {
			var err error
			if x.graders, err = graders(x.task); err != nil {
				return err
			}
		}
		in := map[string]*tensor.Tensor{}
		for name, at := range map[string]*place{"rows": g.Rows, "answers": g.Answers} {
			t := tensor.New(tensor.Make(tensor.Int32, at.Dims...))
			if _, err := x.child.Memory.ReadAt(t.Bytes(), at.Offset); err != nil {
				return err
			}
			in[name] = t
		}
		out, err := x.graders[op].Run(in)
		if err != nil {
			return err
		}
		_, err = x.child.Memory.WriteAt(out["reward"].Bytes(), g.Reward.Offset)
		return err
	}
	return fmt.Errorf("operator %d has no reward", op)
}
