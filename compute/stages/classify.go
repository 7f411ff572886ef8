package stages

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
)

// class says what a value is computed from. Each class reads the classes before it.
type class uint8

const (
	free     class = iota // no weight: every stage computes it for itself
	weight                // weights and moments alone
	forward               // weights and tokens
	gradient              // the gradient of the loss
	update                // the squares of gradients, which the norm adds up
)

// classified is a program whose values are classified.
type classified struct {
	p     *program.Program
	class []class
	part  []int    // by value: the last microbatch that it depends on; -1: none
	roots [][]int  // by value of class weight: the inputs that it is computed from, ascending
	loss  []bool   // values that the loss depends on
	micro int      // microbatches of a step
	first []int64  // rows of the tokens at which they begin
	owner []string // by input of a weight or moment: the weight that it belongs to; else ""
}

// classify classifies the values of a step.
func classify(p *program.Program) (*classified, error) {
	n := len(p.Ops)
	c := &classified{p: p, class: make([]class, n), part: make([]int, n), roots: make([][]int, n),
		owner: make([]string, n)}
	if err := c.inputs(); err != nil {
		return nil, err
	}
	c.batches()
	norm, err := c.ancestors("grad_norm")
	if err != nil {
		return nil, err
	}
	if c.loss, err = c.ancestors("loss"); err != nil {
		return nil, err
	}
	seeds := 0
	token := make([]bool, n) // free values that depend on tokens
	for i := range p.Ops {
		c.part[i] = c.partOf(i)
		token[i] = p.Ops[i].Name == "tokens" || slices.ContainsFunc(p.Ops[i].In, func(v int32) bool { return token[v] })
		if p.Ops[i].Kind == program.Input {
			continue
		}
		if p.Ops[i].Kind == program.CrossEntropyGrad {
			seeds++
		}
		c.class[i] = c.classOf(i, norm[i], token)
		if c.class[i] == weight {
			for _, v := range p.Ops[i].In {
				c.roots[i] = append(c.roots[i], c.roots[v]...)
			}
			slices.Sort(c.roots[i])
			c.roots[i] = slices.Compact(c.roots[i])
		}
		if (c.class[i] == forward || c.class[i] == gradient) && c.part[i] < 0 {
			return nil, fmt.Errorf("%w: operator %d (%s) belongs to no microbatch", ErrCut, i, p.Ops[i].Kind)
		}
	}
	if seeds == 0 {
		return nil, fmt.Errorf("%w: its loss is no cross-entropy of tokens", ErrCut)
	}
	return c, nil
}

// classOf is the class of the value of an operator that is no input.
func (c *classified) classOf(i int, normed bool, token []bool) class {
	op := &c.p.Ops[i]
	top, tokens := free, false
	for _, v := range op.In {
		top, tokens = max(top, c.class[v]), tokens || token[v]
	}
	switch {
	case op.Kind == program.CrossEntropyGrad:
		return max(top, gradient)
	case op.Kind == program.SumSquares && top == gradient && normed:
		return update
	case top == weight && tokens:
		return forward
	}
	return top
}

// inputs classifies the inputs, and finds the weights that they belong to.
func (c *classified) inputs() error {
	var weights []string
	for _, in := range c.p.Inputs() {
		if n, ok := strings.CutPrefix(in.Name, optimizer.Param); ok {
			weights = append(weights, n)
		}
	}
	for _, in := range c.p.Inputs() {
		switch in.Name {
		case "tokens", "lr", "c1", "c2", "dice":
			continue
		}
		prefix, rest, ok := strings.Cut(in.Name, "/")
		if _, of, earlier := optimizer.EarlierOf(in.Name); earlier {
			prefix, rest = strings.TrimSuffix(optimizer.Param, "/"), of
		}
		if !ok || !slices.Contains([]string{optimizer.Param, optimizer.First, optimizer.Second, optimizer.Rows,
			optimizer.Columns, optimizer.Begin}, prefix+"/") {
			return fmt.Errorf("%w: it reads %q", ErrCut, in.Name)
		}
		for _, w := range weights {
			if (rest == w || rest == w+optimizer.ScaleSuffix) && len(w) > len(c.owner[in.Value]) {
				c.owner[in.Value] = w
			}
		}
		if c.owner[in.Value] == "" {
			return fmt.Errorf("%w: %q belongs to no weight", ErrCut, in.Name)
		}
		c.class[in.Value], c.roots[in.Value] = weight, []int{int(in.Value)}
	}
	return nil
}

// batches finds the microbatches: the parts of the rows of the tokens that a step slices.
func (c *classified) batches() {
	for i := range c.p.Ops {
		if first, ok := c.slice(i); ok && !slices.Contains(c.first, first) {
			c.first = append(c.first, first)
		}
	}
	slices.Sort(c.first)
	c.micro = max(1, len(c.first))
}

// slice reports whether an operator takes a part of the rows of the tokens, and from which on.
func (c *classified) slice(i int) (first int64, ok bool) {
	op := &c.p.Ops[i]
	if op.Kind != program.Slice || c.p.Ops[op.In[0]].Name != "tokens" {
		return 0, false
	}
	rows := c.p.Ops[op.In[0]].Out.Dims
	return op.Ints[0], op.Out.Dims[0] < rows[0]
}

// partOf is the last microbatch that a value depends on.
func (c *classified) partOf(i int) int {
	if first, ok := c.slice(i); ok {
		return slices.Index(c.first, first)
	}
	if c.p.Ops[i].Name == "tokens" && len(c.first) == 0 {
		return 0
	}
	part := -1
	for _, v := range c.p.Ops[i].In {
		part = max(part, c.part[v])
	}
	return part
}

// ancestors marks the values that an output depends on.
func (c *classified) ancestors(output string) ([]bool, error) {
	i := slices.IndexFunc(c.p.Outputs, func(o program.Output) bool { return o.Name == output })
	if i < 0 {
		return nil, fmt.Errorf("%w: it has no output %q", ErrCut, output)
	}
	only := &program.Program{Ops: c.p.Ops, Outputs: c.p.Outputs[i : i+1]}
	return only.Live(), nil
}

// Group is the tensors of the model that lie between two places where it can be cut: a layer, what comes before the
// first, or what comes after the last.
type Group struct{ Weights []string }

// Groups lists the places of a program before which it can be cut, but before the first: its embeddings, every layer,
// and the output layer. Weights are assigned by the number in
// their name, others by the operator that reads them first.
func Groups(p *program.Program) ([]Group, error) {
	c, err := classify(p)
	if err != nil {
		return nil, err
	}
	use := c.firstUses()
	var numbers []int
	layers := map[string]int{} // numbers of layers in the names of weights
	begin := len(p.Ops)        // of the first layer
	var weights []string
	for _, in := range p.Inputs() {
		w, ok := strings.CutPrefix(in.Name, optimizer.Param)
		if !ok {
			continue
		}
		weights = append(weights, w)
		if n, ok := layerOf(w); ok {
			numbers, layers[w] = append(numbers, n), n
			if at, used := use[w]; used {
				begin = min(begin, at)
			}
		}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	if len(numbers) == 0 {
		return nil, fmt.Errorf("%w: its weights have no layers in their names", ErrCut)
	}
	groups := make([]Group, len(numbers)+2)
	for _, w := range weights {
		at := len(groups) - 1
		if n, ok := layers[w]; ok {
			at = 1 + slices.Index(numbers, n)
		} else if use[w] < begin {
			at = 0
		}
		groups[at].Weights = append(groups[at].Weights, w)
	}
	return groups, nil
}

// firstUses is, by weight, the first operator that reads it together with tokens.
func (c *classified) firstUses() map[string]int {
	use := map[string]int{}
	for i := range c.p.Ops {
		if c.class[i] != forward {
			continue
		}
		for _, v := range c.p.Ops[i].In {
			for _, r := range c.roots[v] {
				if _, known := use[c.owner[r]]; !known {
					use[c.owner[r]] = i
				}
			}
		}
	}
	return use
}

// layerOf is the number of the layer in the name of a weight.
func layerOf(name string) (int, bool) {
	for word := range strings.SplitSeq(name, ".") {
		if n, err := strconv.Atoi(word); err == nil && n >= 0 {
			return n, true
		}
	}
	return 0, false
}
