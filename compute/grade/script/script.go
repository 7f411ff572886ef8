// Package script runs functions of strangers that judge a text: a part of Starlark with counted costs. A call gives the
// same bits on every machine, or fails at the same step: its cost counts every evaluation, and every element and byte
// that an evaluation reads or makes, so that a bound of the cost bounds time and memory, too.
//
// The language is that of the Starlark specification without load, while, sets, bytes, formatted text other than by %,
// star arguments, and without integers beyond 64 bits. There is no clock, no randomness, no file and no output. The
// package parses with go.starlark.net/syntax and evaluates by itself; costs are its own, and part of the protocol.
package script

import (
	"errors"
	"fmt"

	"go.starlark.net/resolve"
	"go.starlark.net/syntax"

	"github.com/starling-network/starling/compute/grade/script/value"
)

// MaxSource is the largest size of a source, in bytes.
const MaxSource = 16 << 10

// Errors of this package.
var (
	ErrSource = errors.New("script: invalid source") // a source that is no function of the part of the language
	ErrFailed = value.ErrFailed                      // of a call: wrong operations on its values, or a call of fail
	ErrCost   = value.ErrCost                        // of a call that reached the bound of its cost
)

// Script is a function of a source. It may be called by several goroutines at once.
type Script struct {
	file *syntax.File
	def  *resolve.Function
}

// options leave out of the language what would make a call unbounded or its state lasting.
var options = &syntax.FileOptions{}

// Compile reads a source that defines a function with a number of parameters. Errors wrap ErrSource, and say the line
// and the column.
func Compile(source, function string, parameters int) (*Script, error) {
	fail := func(format string, args ...any) (*Script, error) {
		return nil, fmt.Errorf("%w: %s", ErrSource, fmt.Sprintf(format, args...))
	}
	if len(source) > MaxSource {
		return fail("it has %d bytes, at most %d are taken", len(source), MaxSource)
	}
	file, err := options.Parse("reward", source, 0)
	if err != nil {
		return fail("%v", err)
	}
	if err := resolve.File(file, none, isBuiltin); err != nil {
		return fail("%v", err)
	}
	if err := supported(file); err != nil {
		return fail("%v", err)
	}
	for _, s := range file.Stmts {
		if def, ok := s.(*syntax.DefStmt); ok && def.Name.Name == function {
			f := def.Function.(*resolve.Function)
			if len(f.Params) != parameters {
				return fail("%s has %d parameters, and is called with %d", function, len(f.Params), parameters)
			}
			return &Script{file: file, def: f}, nil
		}
	}
	return fail("it defines no function %s", function)
}

func none(string) bool { return false }

// supported refuses what the language has and this package has not.
func supported(file *syntax.File) (err error) {
	refuse := func(n syntax.Node, what string) {
		if at, _ := n.Span(); err == nil {
			err = fmt.Errorf("%s: %s", at, what)
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.LoadStmt:
			refuse(n, "load is not supported: a source is all that a function reads")
		case *syntax.Literal:
			if n.Token == syntax.BYTES {
				refuse(n, "bytes are not supported: use a string")
			} else if _, big := n.Value.(interface{ Sign() int }); big {
				refuse(n, "the number has more than 64 bits")
			}
		case *syntax.UnaryExpr:
			if n.Op == syntax.STAR || n.Op == syntax.STARSTAR {
				refuse(n, "* and ** before an argument or a parameter are not supported")
			}
		case *syntax.Comprehension:
			if _, entry := n.Body.(*syntax.DictEntry); n.Curly && !entry {
				refuse(n, "sets are not supported: use a dict")
			}
		}
		return err == nil
	})
	return err
}

// Call runs the source, then its function with the arguments, which are nil, bool, int64, float64, string, []any and
// map[string]any of these, and returns its result as one of them. The keys of a map are in the order of their bytes.
// The error wraps ErrFailed or ErrCost.
func (s *Script) Call(most int, args ...any) (result any, err error) {
	m := &machine{universe: universe()}
	m.Meter = &value.Meter{Left: most, Where: m.position}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case value.Failure:
			result, err = nil, r.Err
		default:
			panic(r)
		}
	}()
	m.run(s.file)
	values := make([]value.Value, len(args))
	for i, a := range args {
		values[i] = value.Taken(m.Meter, a, 0)
	}
	globals := m.globals
	for i, b := range s.file.Module.(*resolve.Module).Globals {
		if b.First.Name == s.def.Name {
			return value.Given(m.Meter, m.call(globals[i].v, values, nil), 0), nil
		}
	}
	return nil, fmt.Errorf("%w: %s is not defined", ErrFailed, s.def.Name)
}

// machine is one call.
type machine struct {
	*value.Meter
	at       syntax.Node // that is evaluated
	universe map[string]value.Value
	globals  []*cell
	active   []*resolve.Function
}

// position says where the evaluation is.
func (m *machine) position() string {
	if m.at == nil {
		return "its call"
	}
	at, _ := m.at.Span()
	return at.String()
}
