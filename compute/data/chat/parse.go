package chat

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Parse reads a template. The error wraps ErrTemplate and says what is not known.
func Parse(source string) (*Template, error) {
	if len(source) > maxTemplate {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrTemplate, maxTemplate)
	}
	tags, err := split(source)
	if err != nil {
		return nil, err
	}
	p := &blockParser{tags: tags}
	body, end, err := p.body(0)
	if err != nil {
		return nil, err
	}
	if end != "" {
		return nil, fmt.Errorf("%w: %s without its beginning", ErrTemplate, end)
	}
	return &Template{body}, nil
}

// tag is a text, or what stands between braces.
type tag struct {
	kind byte // 0 text, '{' output, '%' block
	text string
}

// split cuts a template at its braces. A block takes the newline after it, and the blanks before it in its line; a dash
// takes all white space.
func split(source string) (tags []tag, err error) {
	trim := false
	for source != "" {
		i := opening(source)
		text := source[:i]
		if trim {
			text = strings.TrimLeft(text, " \t\r\n")
		}
		if i == len(source) {
			return append(tags, tag{0, text}), nil
		}
		kind := source[i+1]
		closing := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[kind]
		inner, rest, ok := strings.Cut(source[i+2:], closing)
		if !ok {
			return nil, fmt.Errorf("%w: {%c without %s", ErrTemplate, kind, closing)
		}
		switch {
		case strings.HasPrefix(inner, "-"):
			inner, text = inner[1:], strings.TrimRight(text, " \t\r\n")
		case kind != '{':
			if line := strings.TrimRight(text, " \t"); line == "" && len(tags) == 0 || strings.HasSuffix(line, "\n") {
				text = line
			}
		}
		trim = strings.HasSuffix(inner, "-")
		inner = strings.TrimSuffix(inner, "-")
		if kind != '{' && !trim {
			rest = strings.TrimPrefix(rest, "\n")
		}
		if text != "" {
			tags = append(tags, tag{0, text})
		}
		if kind != '#' {
			tags = append(tags, tag{kind, strings.TrimSpace(inner)})
		}
		source = rest
	}
	return tags, nil
}

// opening is where the first brace of Jinja stands, or the length.
func opening(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '{' && (s[i+1] == '{' || s[i+1] == '%' || s[i+1] == '#') {
			return i
		}
	}
	return len(s)
}

type blockParser struct{ tags []tag }

var (
	block    = regexp.MustCompile(`^\w*`)
	forBlock = regexp.MustCompile(`(?s)^for\s+(\w+)\s+in\s+(.+)$`)
	setBlock = regexp.MustCompile(`(?s)^set\s+(\w+)\s*=\s*(.+)$`)
)

// body reads up to a block that it does not begin, such as endfor, which it returns; "" is the end.
func (p *blockParser) body(depth int) (list []node, end string, err error) {
	if depth > maxDepth {
		return nil, "", fmt.Errorf("%w: blocks are too deep", ErrTemplate)
	}
	for len(p.tags) > 0 {
		t := p.tags[0]
		p.tags = p.tags[1:]
		var n node
		switch {
		case t.kind == 0:
			n = textNode(t.text)
		case t.kind == '{':
			var x expression
			x, err = parseExpression(t.text)
			n = outputNode{x}
		default:
			word := block.FindString(t.text)
			rest := strings.TrimSpace(t.text[len(word):])
			text := strings.TrimSpace(word + " " + rest)
			switch word {
			case "for":
				n, err = p.forBlock(text, depth)
			case "if":
				n, err = p.ifBlock(rest, depth)
			case "set":
				m := setBlock.FindStringSubmatch(text)
				if m == nil {
					return nil, "", fmt.Errorf("%w: %q", ErrTemplate, text)
				}
				var x expression
				x, err = parseExpression(m[2])
				n = setNode{m[1], x}
			case "endfor", "endif", "elif", "else":
				return list, text, nil
			default:
				err = fmt.Errorf("%w: the block %q is not known", ErrTemplate, word)
			}
		}
		if err != nil {
			return nil, "", err
		}
		list = append(list, n)
	}
	return list, "", nil
}

func (p *blockParser) forBlock(text string, depth int) (node, error) {
	m := forBlock.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("%w: %q", ErrTemplate, text)
	}
	over, err := parseExpression(m[2])
	if err != nil {
		return nil, err
	}
	body, end, err := p.body(depth + 1)
	if err == nil && end != "endfor" {
		err = fmt.Errorf("%w: for ends with %q", ErrTemplate, end)
	}
	return forNode{m[1], over, body}, err
}

func (p *blockParser) ifBlock(condition string, depth int) (node, error) {
	var n ifNode
	for {
		x, err := parseExpression(condition)
		if err != nil {
			return nil, err
		}
		n.conditions = append(n.conditions, x)
		body, end, err := p.body(depth + 1)
		if err != nil {
			return nil, err
		}
		n.bodies = append(n.bodies, body)
		if rest, ok := strings.CutPrefix(end, "elif "); ok {
			condition = rest
			continue
		}
		if end == "else" {
			if body, end, err = p.body(depth + 1); err != nil {
				return nil, err
			}
			n.bodies = append(n.bodies, body)
		}
		if end != "endif" {
			return nil, fmt.Errorf("%w: if ends with %q", ErrTemplate, end)
		}
		return n, nil
	}
}

var name = regexp.MustCompile(`^\w+$`)

var words = regexp.MustCompile(`\s+|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\w+|==|!=|<=|>=|[-+~%<>().,:\[\]|]`)

// parseExpression reads an expression by operator precedence.
func parseExpression(text string) (expression, error) {
	p := &expressionParser{}
	for at := 0; at < len(text); {
		m := words.FindStringIndex(text[at:])
		if m == nil || m[0] != 0 {
			return nil, fmt.Errorf("%w: %.40q", ErrTemplate, text[at:])
		}
		if word := text[at : at+m[1]]; strings.TrimSpace(word) != "" {
			p.words = append(p.words, word)
		}
		at += m[1]
	}
	x, err := p.choice()
	if err == nil && len(p.words) > 0 {
		err = fmt.Errorf("%w: %q is not expected", ErrTemplate, p.words[0])
	}
	return x, err
}

type expressionParser struct {
	words []string
	depth int
}

func (p *expressionParser) is(words ...string) bool {
	return len(p.words) > 0 && slices.Contains(words, p.words[0])
}

func (p *expressionParser) take() (word string) {
	if len(p.words) > 0 {
		word, p.words = p.words[0], p.words[1:]
	}
	return word
}

func (p *expressionParser) want(word string) error {
	if got := p.take(); got != word {
		return fmt.Errorf("%w: %q in place of %q", ErrTemplate, got, word)
	}
	return nil
}

// choice is a if b else c.
func (p *expressionParser) choice() (expression, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("%w: an expression is too deep", ErrTemplate)
	}
	defer func() { p.depth-- }()
	x, err := p.binary(0)
	if err != nil || !p.is("if") {
		return x, err
	}
	p.take()
	condition, err := p.binary(0)
	if err != nil {
		return nil, err
	}
	var other expression = literal{nil}
	if p.is("else") {
		p.take()
		if other, err = p.choice(); err != nil {
			return nil, err
		}
	}
	return call{"if", []expression{condition, x, other}}, nil
}

// levels are the operators, the weakest first; not stands between and and the comparisons.
var levels = [][]string{{"or"}, {"and"}, {"==", "!=", "<", ">", "<=", ">=", "in", "is", "not"}, {"+", "-", "~"}, {"%"}}

func (p *expressionParser) binary(level int) (expression, error) {
	if level == len(levels) {
		return p.postfix()
	}
	if level == 2 && p.is("not") {
		p.take()
		x, err := p.binary(level)
		return call{"not", []expression{x}}, err
	}
	x, err := p.binary(level + 1)
	for err == nil && p.is(levels[level]...) {
		op := p.take()
		if op == "is" {
			x, err = p.test(x)
			continue
		}
		negate := op == "not"
		if negate {
			if err := p.want("in"); err != nil {
				return nil, err
			}
			op = "in"
		}
		var y expression
		if y, err = p.binary(level + 1); err != nil {
			return nil, err
		}
		if x = (call{op, []expression{x, y}}); negate {
			x = call{"not", []expression{x}}
		}
	}
	return x, err
}

// test is what follows is.
func (p *expressionParser) test(x expression) (expression, error) {
	negate := p.is("not")
	if negate {
		p.take()
	}
	word := p.take()
	name := "is " + strings.ToLower(word)
	if word == "undefined" {
		name, negate = "is defined", !negate
	}
	if _, ok := functions[name]; !ok {
		return nil, fmt.Errorf("%w: the test %q is not known", ErrTemplate, word)
	}
	x = call{name, []expression{x}}
	if negate {
		x = call{"not", []expression{x}}
	}
	return x, nil
}

// postfix is a value with members, slices, methods and filters.
func (p *expressionParser) postfix() (expression, error) {
	x, err := p.value()
	for err == nil && p.is(".", "[", "|") {
		switch p.take() {
		case "|":
			name := p.take()
			if _, ok := functions["|"+name]; !ok {
				return nil, fmt.Errorf("%w: the filter %q is not known", ErrTemplate, name)
			}
			x = call{"|" + name, []expression{x}}
		case ".":
			name := p.take()
			if !p.is("(") {
				x = call{"at", []expression{x, literal{name}}}
				continue
			}
			if _, ok := functions["."+name]; !ok {
				return nil, fmt.Errorf("%w: the method %q is not known", ErrTemplate, name)
			}
			var args []expression
			if args, err = p.arguments(); err == nil {
				x = call{"." + name, append([]expression{x}, args...)}
			}
		case "[":
			x, err = p.index(x)
		}
	}
	return x, err
}

func (p *expressionParser) index(x expression) (expression, error) {
	bounds := [2]expression{literal{nil}, literal{nil}}
	var err error
	if !p.is(":") {
		if bounds[0], err = p.choice(); err != nil {
			return nil, err
		}
		if p.is("]") {
			p.take()
			return call{"at", []expression{x, bounds[0]}}, nil
		}
	}
	if err := p.want(":"); err != nil {
		return nil, err
	}
	if !p.is("]") {
		if bounds[1], err = p.choice(); err != nil {
			return nil, err
		}
	}
	return call{"slice", []expression{x, bounds[0], bounds[1]}}, p.want("]")
}

func (p *expressionParser) arguments() (args []expression, err error) {
	if err := p.want("("); err != nil {
		return nil, err
	}
	for !p.is(")") {
		x, err := p.choice()
		if err != nil {
			return nil, err
		}
		if args = append(args, x); !p.is(")") {
			if err := p.want(","); err != nil {
				return nil, err
			}
		}
	}
	p.take()
	return args, nil
}

// escapes are those of texts.
var escapes = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\'`, "'", `\"`, `"`, `\\`, `\`)

// value is a literal, a variable, a call or an expression in parentheses.
func (p *expressionParser) value() (expression, error) {
	word := p.take()
	switch {
	case word == "(":
		x, err := p.choice()
		if err != nil {
			return nil, err
		}
		return x, p.want(")")
	case word == "-":
		n, err := strconv.Atoi(p.take())
		if err != nil {
			return nil, fmt.Errorf("%w: a number is wanted after -", ErrTemplate)
		}
		return literal{-n}, nil
	case strings.HasPrefix(word, "'") || strings.HasPrefix(word, `"`):
		return literal{escapes.Replace(word[1 : len(word)-1])}, nil
	case word == "true" || word == "True":
		return literal{true}, nil
	case word == "false" || word == "False":
		return literal{false}, nil
	case word == "none" || word == "None":
		return literal{nil}, nil
	case !name.MatchString(word):
		return nil, fmt.Errorf("%w: %q in place of a value", ErrTemplate, word)
	}
	if n, err := strconv.Atoi(word); err == nil {
		return literal{n}, nil
	}
	if !p.is("(") {
		return variable(word), nil
	}
	if word != "raise_exception" {
		return nil, fmt.Errorf("%w: the function %q is not known", ErrTemplate, word)
	}
	args, err := p.arguments()
	if err == nil && len(args) != 1 {
		err = fmt.Errorf("%w: raise_exception takes one text", ErrTemplate)
	}
	return call{word, args}, err
}
