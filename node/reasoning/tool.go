package reasoning

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/grade/script"
	"github.com/starling-network/starling/web/openai/strategy"
)

// The marks by which models call tools, as those of Qwen and Hermes were trained to: a call is a JSON object with the
// keys name and arguments. The result follows the call in the text that the model continues.
const (
	openCall, closeCall     = "<tool_call>", "</tool_call>"
	openResult, closeResult = "<tool_response>", "</tool_response>"
)

// Limits of tools.
const (
	maxCalls  = 16      // in a text
	maxCost   = 1 << 20 // of a call, see compute/grade/script
	maxResult = 4 << 10 // bytes
)

// ErrTool wraps every reason why a file is not a tool.
var ErrTool = errors.New("not a tool")

// toolName matches the names of tools.
var toolName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// Tool is a function in Starlark of one parameter, the arguments of a call as a dict, that returns a string, a number,
// or another value that JSON has. It reads nothing else, and its costs are bounded.
type Tool struct {
	Name   string
	script *script.Script
}

// OpenTool reads the function of a name in a file. The error wraps ErrTool.
func OpenTool(name, path string) (Tool, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return Tool{}, fmt.Errorf("%w: %w", ErrTool, err)
	}
	return NewTool(name, string(source))
}

// NewTool reads the function of a name in a source. The error wraps ErrTool.
func NewTool(name, source string) (Tool, error) {
	if !toolName.MatchString(name) {
		return Tool{}, fmt.Errorf("%w: the name %.40q is not one of at most 32 of a-z, 0-9 and _", ErrTool, name)
	}
	s, err := script.Compile(source, name, 1)
	if err != nil {
		return Tool{}, fmt.Errorf("%w: %s: %w", ErrTool, name, err)
	}
	return Tool{Name: name, script: s}, nil
}

// names lists the tools of a server.
func (m *Model) names() string {
	if len(m.tools) == 0 {
		return "none"
	}
	var all []string
	for name := range m.tools {
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// call answers a call with its marks. A wrong call has a result that begins with "error: ", so that the
// model may try again.
func (a *attempt) call(text string) strategy.Call {
	raw := strings.TrimSuffix(strings.TrimPrefix(text, openCall), closeCall)
	var asked struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	}
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&asked); err != nil {
		return strategy.Call{Arguments: raw, Result: "error: the call is not a JSON object with name and arguments"}
	}
	c := strategy.Call{Tool: asked.Name, Arguments: marshal(asked.Arguments)}
	t, ok := a.tools[asked.Name]
	if !ok {
		c.Result = "error: there is no tool of this name"
		return c
	}
	result, err := t.script.Call(maxCost, plain(asked.Arguments))
	if err != nil {
		c.Result = "error: " + err.Error()
		return c
	}
	var said bool
	if c.Result, said = result.(string); !said {
		c.Result = marshal(result)
	}
	if len(c.Result) > maxResult {
		c.Result = fmt.Sprintf("error: the result has %d bytes, at most %d are taken", len(c.Result), maxResult)
	}
	return c
}

// marshal writes a value as JSON; a number that JSON has not as an error.
func marshal(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "error: " + err.Error()
	}
	return strings.TrimSpace(b.String())
}

// plain returns a decoded value with its numbers as int64 where they are whole, and else as float64.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // beyond its range: infinity
		return f
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	}
	return v
}
