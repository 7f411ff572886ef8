package script

import (
	"go.starlark.net/resolve"
	"go.starlark.net/syntax"

	"github.com/starling-network/starling/compute/grade/script/value"
)

// function is a def or a lambda with its defaults and the variables around it.
type function struct {
	*resolve.Function
	defaults []value.Value // of the last parameters
	free     []*cell
}

// Name and Type are those of a value.Function.
func (f *function) Name() string { return f.Function.Name }
func (f *function) Type() string { return "function" }

// builtin is a function of the universe, or a method of a value.
type builtin struct {
	name string
	call func(m *machine, a arguments) value.Value
}

// Name and Type are those of a value.Function.
func (b *builtin) Name() string { return b.name }
func (b *builtin) Type() string { return "builtin_function_or_method" }

// cell is a variable.
type cell struct {
	v   value.Value
	set bool
}

// frame is the activation of a function, or of the file.
type frame struct {
	m      *machine
	locals []*cell
	free   []*cell
	result value.Value
}

// Ways in which a statement ends.
type flow int

const (
	onward flow = iota
	again       // continue
	leave       // break
	done        // return
)

// run executes the statements of a file.
func (m *machine) run(file *syntax.File) {
	module := file.Module.(*resolve.Module)
	m.globals = cells(len(module.Globals))
	f := &frame{m: m, locals: cells(len(module.Locals))}
	f.block(file.Stmts)
}

func cells(n int) []*cell {
	out := make([]*cell, n)
	for i := range out {
		out[i] = new(cell)
	}
	return out
}

func (f *frame) block(list []syntax.Stmt) flow {
	for _, s := range list {
		if to := f.statement(s); to != onward {
			return to
		}
	}
	return onward
}

func (f *frame) statement(s syntax.Stmt) flow {
	f.at(s)
	f.m.Spend(1)
	switch s := s.(type) {
	case *syntax.ExprStmt:
		f.eval(s.X)
	case *syntax.BranchStmt:
		return map[syntax.Token]flow{syntax.BREAK: leave, syntax.CONTINUE: again, syntax.PASS: onward}[s.Token]
	case *syntax.ReturnStmt:
		if s.Result != nil {
			f.result = f.eval(s.Result)
		}
		return done
	case *syntax.IfStmt:
		if value.Truth(f.eval(s.Cond)) {
			return f.block(s.True)
		}
		return f.block(s.False)
	case *syntax.ForStmt:
		return f.loop(s)
	case *syntax.DefStmt:
		f.set(s.Name, f.closure(s.Function.(*resolve.Function)))
	case *syntax.AssignStmt:
		if s.Op == syntax.EQ {
			f.assign(s.LHS, f.eval(s.RHS))
		} else {
			f.augment(s)
		}
	default:
		f.m.Fail("this statement is not supported")
	}
	return onward
}

func (f *frame) at(n syntax.Node) { f.m.at = n }

func (f *frame) loop(s *syntax.ForStmt) (end flow) {
	f.each(f.eval(s.X), func(v value.Value) bool {
		f.assign(s.Vars, v)
		to := f.block(s.Body)
		if to == done {
			end = done
		}
		return to == onward || to == again
	})
	return end
}

// each calls next for the elements of a value.Value until it returns false.
func (f *frame) each(of value.Value, next func(value.Value) bool) {
	m := f.m
	one := func(v value.Value) bool {
		m.Spend(1)
		return next(v)
	}
	switch x := of.(type) {
	case *value.List:
		x.Loops++
		defer func() { x.Loops-- }()
		for _, v := range x.Elems {
			if !one(v) {
				return
			}
		}
	case *value.Dict:
		x.Loops++
		defer func() { x.Loops-- }()
		for _, v := range x.Keys {
			if !one(v) {
				return
			}
		}
	case value.Tuple:
		for _, v := range x {
			if !one(v) {
				return
			}
		}
	case value.Span:
		for i := range x.N {
			if !one(x.At(i)) {
				return
			}
		}
	default:
		m.Fail("a %s has no elements to go over", value.TypeOf(of))
	}
}

// cellOf is the variable of a name; nil for a builtin.
func (f *frame) cellOf(id *syntax.Ident) *cell {
	b := id.Binding.(*resolve.Binding)
	switch b.Scope {
	case resolve.Local, resolve.Cell:
		return f.locals[b.Index]
	case resolve.Free:
		return f.free[b.Index]
	case resolve.Global:
		return f.m.globals[b.Index]
	}
	return nil
}

func (f *frame) set(id *syntax.Ident, v value.Value) { *f.cellOf(id) = cell{v, true} }

// assign binds a target to a value.
func (f *frame) assign(to syntax.Expr, v value.Value) {
	switch to := to.(type) {
	case *syntax.ParenExpr:
		f.assign(to.X, v)
	case *syntax.Ident:
		f.set(to, v)
	case *syntax.IndexExpr:
		x, k := f.eval(to.X), f.eval(to.Y)
		f.at(to)
		value.SetIndex(f.m.Meter, x, k, v)
	case *syntax.TupleExpr:
		f.unpack(to.List, v)
	case *syntax.ListExpr:
		f.unpack(to.List, v)
	default:
		f.m.Fail("this cannot be assigned to")
	}
}

func (f *frame) unpack(to []syntax.Expr, v value.Value) {
	elems := value.Elements(f.m.Meter, v)
	if len(elems) != len(to) {
		f.m.Fail("%d values for %d variables", len(elems), len(to))
	}
	for i, t := range to {
		f.assign(t, elems[i])
	}
}

// augment is x op= y. A list is extended in place.
func (f *frame) augment(s *syntax.AssignStmt) {
	op := s.Op - syntax.PLUS_EQ + syntax.PLUS
	switch to := s.LHS.(type) {
	case *syntax.Ident:
		x := f.eval(to)
		y := f.eval(s.RHS)
		f.at(s)
		f.set(to, f.m.augmented(op, x, y))
	case *syntax.IndexExpr:
		x, k := f.eval(to.X), f.eval(to.Y)
		old := value.Index(f.m.Meter, x, k)
		y := f.eval(s.RHS)
		f.at(s)
		value.SetIndex(f.m.Meter, x, k, f.m.augmented(op, old, y))
	default:
		f.m.Fail("this cannot be assigned to")
	}
}

func (m *machine) augmented(op syntax.Token, x, y value.Value) value.Value {
	if l, ok := x.(*value.List); ok && op == syntax.PLUS {
		value.Extend(m.Meter, l, y)
		return l
	}
	return value.Binary(m.Meter, op, x, y)
}

// closure makes a function of its definition, with the values of its defaults and the variables around it.
func (f *frame) closure(of *resolve.Function) *function {
	out := &function{Function: of}
	for _, p := range of.Params {
		if b, ok := p.(*syntax.BinaryExpr); ok {
			out.defaults = append(out.defaults, f.eval(b.Y))
		}
	}
	for _, b := range of.FreeVars {
		if b.Scope == resolve.Free {
			out.free = append(out.free, f.free[b.Index])
		} else {
			out.free = append(out.free, f.locals[b.Index])
		}
	}
	f.m.Spend(len(of.FreeVars) + 1)
	return out
}
