package push

import "io"

// textual is a file of a checkpoint.
func textual(name, text string) File {
	return File{Name: name, Write: func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}}
}
