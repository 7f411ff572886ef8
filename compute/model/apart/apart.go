// Package apart joins two programs in one: a step that learns from answers, and the one that draws them, which other
// units execute. Package compute/train/parts divides them again. It computes no model.
package apart

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/program"
)

// Prefixes of the inputs and outputs that pass between the units: package compute/train/parts has the same.
const (
	given    = "q/" // inputs "q/<number>/<name>" of a step that learns, which passes those of the later steps to the next
	drawn    = "d/" // outputs that learning units read
	executed = "e/" // outputs that they do not read, so that only an execution tells them
)

// Answers are what a step learns from, which other units draw.
type Answers[W any] struct {
	Steps  int                  // of a unit
	Reads  int                  // units whose answers a step learns from
	Inputs []architecture.Named // what one of these draws
	// Draw makes the values of Inputs of a batch with the weights, and then one that no unit reads.
	Draw func(w W, batch []*graph.Node) []*graph.Node
	// Learn makes what the loss reads, of a batch and the inputs, those of one unit after those of another.
	Learn func(w W, batch, inputs []*graph.Node) []*graph.Node
}

// Record makes the inputs of all steps by parameters, and returns what the loss reads, and the outputs.
func (a *Answers[W]) Record(w W, batch []*graph.Node, parameters func(prefix string,
	list []architecture.Named) []*graph.Node) (learnt, outputs []*graph.Node) {
	n := len(a.Inputs) * a.Reads
	var all []*graph.Node
	for k := range a.Steps * a.Reads {
		all = append(all, parameters(fmt.Sprintf("%s%d/", given, k), a.Inputs)...)
	}
	learnt = a.Learn(w, batch, all[:n])
	outputs = append(append(outputs, all[n:]...), all[:n]...) // the next step reads the first ones
	return learnt, append(outputs, a.Draw(w, batch)...)
}

// Name names the outputs of Record.
func (a *Answers[W]) Name(b *program.Builder, values []program.Value) {
	n := len(a.Inputs)
	for i, v := range values {
		switch k := i - a.Steps*a.Reads*n; {
		case k < 0:
			b.Output(fmt.Sprintf("%s%d/%s", given, i/n, a.Inputs[i%n].Name), v)
		case k < n:
			b.Output(drawn+a.Inputs[k].Name, v)
		default:
			b.Output(executed+"highest", v)
		}
	}
}
