package terminal

import (
	"os"
)

// PrintList prints a list in any form: to programs as an object with the list under a key, to people as a table.
func PrintList[T any](f Form, key string, all []T, name func(T) string, titles []string,
	row func(T) []any) error {
	if f.Machine() {
		return f.Print(os.Stdout, Items(key, all, name))
	}
	w := NewColumns(os.Stdout, f, titles...)
	for _, x := range all {
		w.Row(row(x)...)
	}
	return w.Flush()
}
