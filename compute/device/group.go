package device

import (
	"fmt"
	"math"
	"strings"

	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/view"
)

// printer prints groups as kernels. Groups of equal steps, such as those of the layers of a model, are one kernel: the
// places of their operands are numbers of the table.
type printer struct {
	text  strings.Builder
	names map[string]string // of the kernels, by their bodies
}

// group prints a group, if none like it has been printed, and returns the name of its kernel and the places that it
// takes from the table.
func (p *printer) group(g *lower.Group, stores []lower.Store, places []int64) (name string, numbers []int64) {
	var body strings.Builder
	index := "int"
	if wide(g) {
		index = "long"
	}
	fmt.Fprintf(&body, "\t%s i = get_global_id(0);\n\tif (i >= %d) return;\n", index, g.N)
	ready := make([]bool, len(g.Values))
	place := func(at int64) string {
		numbers = append(numbers, at)
		return fmt.Sprintf("memory + table[at + %d]", len(numbers)-1)
	}
	for i := range g.Code {
		op := &g.Code[i]
		in := make([]string, len(op.In))
		for k, v := range op.In {
			in[k] = fmt.Sprintf("v%d", v)
			val := &g.Values[v]
			if val.From == nil || ready[v] {
				continue
			}
			ready[v] = true
			at := places[val.Store] + int64(val.From.Offset*val.Type.Size())
			fmt.Fprintf(&body, "\t%s v%d = ((__global const %[1]s *)(%[3]s))[%[4]s];\n", typeOf(val.Type), v, place(at),
				element(val))
		}
		out := &g.Values[op.Out]
		fmt.Fprintf(&body, "\t%s v%d = %s;\n", typeOf(out.Type), op.Out,
			expression(op, g.Values[op.In[0]].Type, out.Type, in))
		if stores[out.Store].Used {
			fmt.Fprintf(&body, "\t((__global %s *)(%s))[i] = v%d;\n", typeOf(out.Type), place(places[out.Store]), op.Out)
		}
	}
	name, known := p.names[body.String()]
	if !known {
		name = fmt.Sprintf("group_%d", len(p.names))
		p.names[body.String()] = name
		fmt.Fprintf(&p.text, "\nKERNEL(%s) {\n%s}\n", name, &body)
	}
	return name, numbers
}

// element is the index of element i of a value, counted from the offset of its view.
func element(val *lower.GroupValue) string {
	if val.Whole {
		return "0"
	}
	m := val.From.Merged()
	var terms []string
	for d, inner := len(m.Dims)-1, 1; d >= 0; d-- {
		term := "i"
		if inner > 1 {
			term += fmt.Sprintf(" / %d", inner)
		}
		if inner *= m.Dims[d]; d > 0 {
			term += fmt.Sprintf(" %% %d", m.Dims[d])
		}
		if m.Strides[d] != 0 {
			terms = append(terms, fmt.Sprintf("(%s) * %d", term, m.Strides[d]))
		}
	}
	if len(terms) == 0 {
		return "0"
	}
	return strings.Join(terms, " + ")
}

// wide reports whether the indices of a group need 64 bits.
func wide(g *lower.Group) bool {
	const most = math.MaxInt32 - groupItems
	for _, v := range g.Values {
		if v.From != nil && reach(v.From.View) > most {
			return true
		}
	}
	return g.N > most
}

// reach is the largest distance of an element from the first.
func reach(v view.View) (sum int) {
	for d, n := range v.Dims {
		sum += (n - 1) * max(v.Strides[d], -v.Strides[d])
	}
	return sum
}

// groupItems is the number of work-items of a work-group of kernels with one dimension.
const groupItems = 64
