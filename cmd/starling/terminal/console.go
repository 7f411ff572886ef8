package terminal

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Console is what commands write to, as the flags that every command has say: answers to standard output, in a form,
// and news to standard error, unless it is to be quiet. A command that answers programs and people alike needs no more
// of it than its form.
type Console struct {
	Form  Form
	Quiet bool
}

// logAnswer is about lines of a log, which nothing takes; whole is the object that has them.
func logAnswer(whole any, lines []string) Answer {
	items := make([]map[string]string, len(lines))
	for i, line := range lines {
		items[i] = map[string]string{"line": line}
	}
	return Lines(whole, items)
}

// documentAnswer is a document that is JSON already, such as a schema or a genesis.
func documentAnswer(text []byte, name string) Answer {
	return One(json.RawMessage(text), name)
}

// PrintDocument writes a document as it is, unless another form is asked for.
func (c *Console) PrintDocument(text []byte, name string) error {
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, documentAnswer(text, name))
	}
	_, err := os.Stdout.Write(text)
	return err
}

// PrintLine prints one of the objects of a stream, on a line, whatever form for programs is asked for.
func (c *Console) PrintLine(object any) error {
	return JSON.Print(os.Stdout, One(object, ""))
}

// PrintLog prints a part of a log, of which whole is the object.
func (c *Console) PrintLog(whole any, lines []string) error {
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, logAnswer(whole, lines))
	}
	return c.PrintLines(lines)
}

// PrintLines prints lines of a log that is followed, for programs as an object each.
func (c *Console) PrintLines(lines []string) error {
	if c.Form == Name {
		return Nameless("a log")
	}
	for _, line := range lines {
		var err error
		if c.Form.Machine() {
			err = c.PrintLine(map[string]string{"line": line})
		} else {
			_, err = fmt.Println(Printable(line))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Say prints a line of news to standard error.
func (c *Console) Say(text string) {
	if !c.Quiet {
		fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format(time.TimeOnly), text)
	}
}

// Note prints a line to standard error, without the time.
func (c *Console) Note(text string) {
	if !c.Quiet {
		fmt.Fprintln(os.Stderr, text)
	}
}

// Counter shows done of total on the terminal; total 0 ends the line.
func (c *Console) Counter(what string) func(done, total int) {
	mode := ModeFor(os.Stderr, c.Quiet || c.Form.Machine())
	begin, shown := time.Now(), false
	return func(done, total int) {
		switch {
		case mode != Line:
		case total > 0:
			fmt.Fprintf(os.Stderr, "\r%s %d/%d  %s", what, done, total, Span(time.Since(begin)))
			shown = true
		case shown:
			fmt.Fprint(os.Stderr, "\r\x1b[K")
		}
	}
}
