// Package chat renders conversations by the chat templates that tokenizers of Hugging Face carry: the part of Jinja
// that most of them use (texts, output, for, if, set, comparisons, slices, the filters trim, length, upper, lower and
// string), with the blocks trimmed as transformers does.
//
// A template is a stranger's: it is bounded in size, depth, steps and output, and reaches nothing but its variables.
// A template outside of that part is an error when it is parsed.
package chat

import (
	"errors"
	"fmt"
	"strings"
)

// Errors, to be tested with errors.Is.
var (
	ErrTemplate = errors.New("chat: template") // it is not of the part of Jinja that is known
	ErrRender   = errors.New("chat: render")   // it cannot be rendered with these variables
	ErrRaised   = errors.New("chat: the template refuses the conversation")
)

// Limits.
const (
	maxTemplate = 64 << 10 // bytes
	maxDepth    = 64       // of blocks and expressions
	maxSteps    = 100_000  // evaluations
	maxOutput   = 1 << 20  // bytes
)

// Message is one turn.
type Message struct{ Role, Content string }

// Template is a parsed template. It may be rendered by many goroutines.
type Template struct{ body []node }

// Render returns the text that the assistant continues. The tokens are texts that templates put around turns. The error
// wraps ErrRender or ErrRaised.
func (t *Template) Render(conversation []Message, bosToken, eosToken string) (string, error) {
	return t.text(conversation, bosToken, eosToken, true)
}

// Transcript is Render of a conversation that is over: what a model is trained on.
func (t *Template) Transcript(conversation []Message, bosToken, eosToken string) (string, error) {
	return t.text(conversation, bosToken, eosToken, false)
}

func (t *Template) text(conversation []Message, bosToken, eosToken string, goesOn bool) (string, error) {
	var messages []any
	for _, m := range conversation {
		messages = append(messages, map[string]any{"role": m.Role, "content": m.Content})
	}
	r := &renderer{vars: map[string]any{"messages": messages, "add_generation_prompt": goesOn, "bos_token": bosToken,
		"eos_token": eosToken}}
	if err := r.nodes(t.body); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

// renderer is one rendering.
type renderer struct {
	vars  map[string]any
	out   strings.Builder
	steps int
}

func (r *renderer) step() error {
	if r.steps++; r.steps > maxSteps {
		return fmt.Errorf("%w: more than %d steps", ErrRender, maxSteps)
	}
	return nil
}

func (r *renderer) nodes(list []node) error {
	for _, n := range list {
		if err := r.step(); err != nil {
			return err
		}
		if err := n.render(r); err != nil {
			return err
		}
		if r.out.Len() > maxOutput {
			return fmt.Errorf("%w: more than %d bytes", ErrRender, maxOutput)
		}
	}
	return nil
}

// A node is a part of a template.
type node interface{ render(r *renderer) error }

type textNode string

func (n textNode) render(r *renderer) error {
	r.out.WriteString(string(n))
	return nil
}

type outputNode struct{ x expression }

func (n outputNode) render(r *renderer) error {
	v, err := n.x.eval(r)
	if err == nil {
		r.out.WriteString(show(v))
	}
	return err
}

type setNode struct {
	name string
	x    expression
}

func (n setNode) render(r *renderer) error {
	v, err := n.x.eval(r)
	if err == nil {
		r.vars[n.name] = v
	}
	return err
}

type ifNode struct {
	conditions []expression // one for each body, but for that of else
	bodies     [][]node
}

func (n ifNode) render(r *renderer) error {
	for i, body := range n.bodies {
		if i < len(n.conditions) {
			v, err := n.conditions[i].eval(r)
			if err != nil {
				return err
			}
			if !truth(v) {
				continue
			}
		}
		return r.nodes(body)
	}
	return nil
}

type forNode struct {
	name string
	over expression
	body []node
}

// render gives the body a scope of its own, as Jinja does: what it sets is gone after it.
func (n forNode) render(r *renderer) error {
	v, err := n.over.eval(r)
	if err != nil {
		return err
	}
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("%w: for over what is no list", ErrRender)
	}
	outer := r.vars
	defer func() { r.vars = outer }()
	for i, item := range list {
		r.vars = make(map[string]any, len(outer)+2)
		for k, v := range outer {
			r.vars[k] = v
		}
		r.vars[n.name] = item
		r.vars["loop"] = map[string]any{"index": i + 1, "index0": i, "first": i == 0, "last": i == len(list)-1,
			"length": len(list)}
		if err := r.nodes(n.body); err != nil {
			return err
		}
	}
	return nil
}

func show(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	}
	return fmt.Sprint(v)
}

func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case int:
		return v != 0
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}
