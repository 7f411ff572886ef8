package main

import (
	"fmt"
	"os"

	"github.com/starling-network/starling/cmd/starling/terminal"
)

// found is what a command found, as programs get it: as one object, as a line for each thing, and as what things are called.
type found struct {
	whole any
	lines []any
	names []string
}

// one is the answer that is one thing. name is what a script passes to the next command about it; "" if nothing is.
func one(whole any, name string) found {
	f := found{whole: whole, lines: []any{whole}}
	if name != "" {
		f.names = []string{name}
	}
	return f
}

// list is the answer that is a list: whole is the object that holds it.
func list[T any](whole any, items []T, name func(T) string) found {
	f := found{whole: whole}
	for _, item := range items {
		f.lines, f.names = append(f.lines, item), append(f.names, name(item))
	}
	return f
}

// items is the answer that is a list and nothing else: whole, it is an object with the list under a key.
func items[T any](key string, all []T, name func(T) string) found {
	if all == nil {
		all = []T{}
	}
	return list(map[string]any{key: all}, all, name)
}

// tell prints an answer for programs.
func (c *cli) tell(f found) error {
	switch c.form {
	case terminal.JSONL:
		for _, line := range f.lines {
			if err := terminal.JSON.Print(os.Stdout, line); err != nil {
				return err
			}
		}
		return nil
	case terminal.Name:
		if len(f.names) < len(f.lines) {
			return terminal.WithExit(&terminal.Problem{Code: "USAGE", What: "nothing in this answer has a name", Fix: "use -o json"}, terminal.ExitUsage)
		}
		for _, name := range f.names {
			if _, err := fmt.Println(name); err != nil {
				return err
			}
		}
		return nil
	}
	return c.form.Print(os.Stdout, f.whole)
}

// line prints one of the objects of a stream, on a line, whatever form for programs is asked for.
func (c *cli) line(object any) error { return terminal.JSON.Print(os.Stdout, object) }
