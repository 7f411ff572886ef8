package script

import (
	"slices"

	"go.starlark.net/resolve"
	"go.starlark.net/syntax"

	"github.com/starling-network/starling/compute/grade/script/value"
)

// eval is the value.Value of an expression.
func (f *frame) eval(e syntax.Expr) value.Value {
	f.m.Spend(1)
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return f.eval(e.X)
	case *syntax.Ident:
		return f.variable(e)
	case *syntax.Literal:
		return f.literal(e)
	case *syntax.ListExpr:
		return &value.List{Elems: f.evalAll(e.List)}
	case *syntax.TupleExpr:
		return value.Tuple(f.evalAll(e.List))
	case *syntax.DictExpr:
		return f.dict(e)
	case *syntax.CondExpr:
		if value.Truth(f.eval(e.Cond)) {
			return f.eval(e.True)
		}
		return f.eval(e.False)
	case *syntax.UnaryExpr:
		x := f.eval(e.X)
		f.at(e)
		return value.Unary(f.m.Meter, e.Op, x)
	case *syntax.BinaryExpr:
		return f.operation(e)
	case *syntax.IndexExpr:
		x, k := f.eval(e.X), f.eval(e.Y)
		f.at(e)
		return value.Index(f.m.Meter, x, k)
	case *syntax.SliceExpr:
		return f.slice(e)
	case *syntax.DotExpr:
		x := f.eval(e.X)
		f.at(e)
		return f.m.method(x, e.Name.Name)
	case *syntax.CallExpr:
		return f.callOf(e)
	case *syntax.LambdaExpr:
		return f.closure(e.Function.(*resolve.Function))
	case *syntax.Comprehension:
		return f.comprehension(e)
	}
	f.m.Fail("this expression is not supported")
	return nil
}

func (f *frame) evalAll(list []syntax.Expr) []value.Value {
	out := make([]value.Value, len(list))
	for i, e := range list {
		out[i] = f.eval(e)
	}
	return out
}

func (f *frame) variable(id *syntax.Ident) value.Value {
	c := f.cellOf(id)
	if c == nil {
		return f.m.universe[id.Name]
	}
	if !c.set {
		f.at(id)
		f.m.Fail("%s is read before it is assigned", id.Name)
	}
	return c.v
}

func (f *frame) literal(e *syntax.Literal) value.Value {
	if s, ok := e.Value.(string); ok {
		f.m.Bytes(len(s))
	}
	return e.Value // int64, float64 or string: see supported
}

func (f *frame) dict(e *syntax.DictExpr) value.Value {
	out := value.NewDict()
	for _, x := range e.List {
		entry := x.(*syntax.DictEntry)
		k := f.eval(entry.Key)
		v := f.eval(entry.Value)
		f.at(entry)
		if _, twice := out.Get(f.m.Meter, k); twice {
			f.m.Fail("a key is there twice: %s", value.Clip(value.Str(f.m.Meter, k)))
		}
		out.Put(f.m.Meter, k, v)
	}
	return out
}

func (f *frame) operation(e *syntax.BinaryExpr) value.Value {
	x := f.eval(e.X)
	switch {
	case e.Op == syntax.AND && !value.Truth(x), e.Op == syntax.OR && value.Truth(x):
		return x
	case e.Op == syntax.AND || e.Op == syntax.OR:
		return f.eval(e.Y)
	}
	y := f.eval(e.Y)
	f.at(e)
	return value.Binary(f.m.Meter, e.Op, x, y)
}

// slice is x[lo:hi:step] of a text, a list or a tuple.
func (f *frame) slice(e *syntax.SliceExpr) value.Value {
	x := f.eval(e.X)
	var bounds [3]*int64
	for i, b := range []syntax.Expr{e.Lo, e.Hi, e.Step} {
		if b != nil {
			if v := f.eval(b); v != nil {
				n := value.Int(f.m.Meter, v)
				bounds[i] = &n
			}
		}
	}
	f.at(e)
	switch x := x.(type) {
	case string:
		if lo, hi, step := value.Bounds(f.m.Meter, len(x), bounds); step == 1 {
			f.m.Bytes(max(0, hi-lo))
			return x[lo:max(lo, hi)]
		}
		at := value.Places(f.m.Meter, len(x), bounds)
		out := make([]byte, len(at))
		for i, k := range at {
			out[i] = x[k]
		}
		return string(out)
	case value.Tuple:
		return value.Tuple(picked(x, value.Places(f.m.Meter, len(x), bounds)))
	case *value.List:
		return &value.List{Elems: picked(x.Elems, value.Places(f.m.Meter, len(x.Elems), bounds))}
	}
	f.m.Fail("a %s has no slices", value.TypeOf(x))
	return nil
}

func picked(of []value.Value, at []int) []value.Value {
	out := make([]value.Value, len(at))
	for i, k := range at {
		out[i] = of[k]
	}
	return out
}

// comprehension is a list or a dict of the values that its clauses choose.
func (f *frame) comprehension(e *syntax.Comprehension) value.Value {
	out, entries := &value.List{}, value.NewDict()
	var from func(clauses []syntax.Node)
	from = func(clauses []syntax.Node) {
		if len(clauses) == 0 {
			if !e.Curly {
				out.Elems = append(out.Elems, f.eval(e.Body))
				return
			}
			entry := e.Body.(*syntax.DictEntry)
			k := f.eval(entry.Key)
			entries.Put(f.m.Meter, k, f.eval(entry.Value))
			return
		}
		switch c := clauses[0].(type) {
		case *syntax.IfClause:
			if value.Truth(f.eval(c.Cond)) {
				from(clauses[1:])
			}
		case *syntax.ForClause:
			f.each(f.eval(c.X), func(v value.Value) bool {
				f.assign(c.Vars, v)
				from(clauses[1:])
				return true
			})
		}
	}
	from(e.Clauses)
	if e.Curly {
		return entries
	}
	return out
}

// arguments are those of a call.
type arguments struct {
	list  []value.Value
	named []named
}

type named struct {
	name string
	v    value.Value
}

func (f *frame) callOf(e *syntax.CallExpr) value.Value {
	of := f.eval(e.Fn)
	var a arguments
	for _, x := range e.Args {
		if b, ok := x.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
			a.named = append(a.named, named{b.X.(*syntax.Ident).Name, f.eval(b.Y)})
		} else {
			a.list = append(a.list, f.eval(x))
		}
	}
	f.at(e)
	at := f.m.at
	out := f.m.call(of, a.list, a.named)
	f.m.at = at
	return out
}

func (m *machine) call(of value.Value, list []value.Value, names []named) value.Value {
	m.Spend(4 + len(list) + len(names))
	switch c := of.(type) {
	case *builtin:
		return c.call(m, arguments{list, names})
	case *function:
		return m.enter(c, list, names)
	}
	m.Fail("a %s cannot be called", value.TypeOf(of))
	return nil
}

// enter calls a function of the source. A function that calls itself fails.
func (m *machine) enter(of *function, list []value.Value, names []named) value.Value {
	if slices.Contains(m.active, of.Function) {
		m.Fail("%s calls itself", of.Name())
	}
	value.Deep(m.Meter, len(m.active))
	m.Spend(len(of.Locals) + len(names)*len(of.Params)/4)
	f := &frame{m: m, locals: cells(len(of.Locals)), free: of.free}
	if len(list) > len(of.Params) {
		m.Fail("%s has %d parameters, and is called with %d arguments", of.Name(), len(of.Params), len(list))
	}
	for i, v := range list {
		*f.locals[i] = cell{v, true}
	}
	for _, n := range names {
		i := slices.IndexFunc(of.Locals[:len(of.Params)], func(b *resolve.Binding) bool { return b.First.Name == n.name })
		if i < 0 || f.locals[i].set {
			m.Fail("%s has no parameter %s, or two arguments for it", of.Name(), n.name)
		}
		*f.locals[i] = cell{n.v, true}
	}
	first := len(of.Params) - len(of.defaults)
	for i := range of.Params {
		if c := f.locals[i]; !c.set && i < first {
			m.Fail("%s is called without its parameter %d", of.Name(), i+1)
		} else if !c.set {
			*c = cell{of.defaults[i-first], true}
		}
	}
	m.active = append(m.active, of.Function)
	f.block(of.Body)
	m.active = m.active[:len(m.active)-1]
	return f.result
}
