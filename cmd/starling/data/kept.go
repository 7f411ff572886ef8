package data

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/source"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
)

// keeping is a command about files of examples, which are kept at a server, or in a folder of data that one serves.
func keeping(cmd *cobra.Command, do func(cmd *cobra.Command, a *source.Client, args []string) error) *cobra.Command {
	var p source.Place
	var data string
	p.Server(cmd)
	cmd.Flags().StringVar(&data, "data", ".", "folder of data, as that of starling web --data, if no server is asked")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := p.Open(cmd, data)
		if err != nil {
			return err
		}
		defer a.Close()
		return do(cmd, a, args)
	}
	return cmd
}

func addCommand(c *terminal.Console) *cobra.Command {
	return keeping(&cobra.Command{
		Use:   "add FILE",
		Short: "Keep a file of examples, for models to be tuned with",
		Long: `Keep a file of examples, of one conversation or prompt and completion a line, where jobs that tune models find
it: at a server, with --api, or in the folder of data of one. It is read to its end first, and refused with the line of
its first fault. The same bytes have the same identifier.

With -o json: {"id","object","bytes","created_at","filename","purpose","status"}.`,
		Example: `  starling data add chats.jsonl
  starling data add chats.jsonl --api http://127.0.0.1:7300 -o name`,
		Args: usage.Exactly("FILE"),
	}, func(cmd *cobra.Command, a *source.Client, args []string) error {
		f, err := os.Open(args[0])
		if err != nil {
			return dataError(err)
		}
		defer f.Close()
		kept, err := a.Examples().Keep(cmd.Context(), filepath.Base(args[0]), f)
		if err != nil {
			return source.Explain(err)
		}
		if c.Form.Machine() {
			return c.Form.Print(os.Stdout, terminal.One(kept, kept.ID))
		}
		_, err = fmt.Printf("%s  %s, %s\n", kept.ID, kept.Filename, terminal.Bytes(uint64(kept.Bytes)))
		return err
	})
}

func listCommand(c *terminal.Console) *cobra.Command {
	return keeping(&cobra.Command{
		Use:   "list",
		Short: "List the files of examples that are kept",
		Long: `List the files of examples that a server keeps, or that are kept in a folder of data, the latest first.

With -o json: {"files":[{"id","object","bytes","created_at","filename","purpose","status"}]}.`,
		Example: `  starling data list
  starling data list --api http://127.0.0.1:7300 -o name`,
		Args: usage.Exactly(),
	}, func(cmd *cobra.Command, a *source.Client, _ []string) error {
		files, err := a.Examples().List(cmd.Context())
		if err != nil {
			return source.Explain(err)
		}
		if c.Form.Machine() {
			return c.Form.Print(os.Stdout, terminal.Items("files", files, func(f api.FileObject) string { return f.ID }))
		}
		w := terminal.NewColumns(os.Stdout, c.Form, "FILE", "NAME", "BYTES", "KEPT SINCE")
		for _, f := range files {
			w.Row(f.ID, f.Filename, terminal.Bytes(uint64(f.Bytes)), terminal.WhenUnix(f.CreatedAt))
		}
		return w.Flush()
	})
}

func removeCommand(c *terminal.Console) *cobra.Command {
	return keeping(&cobra.Command{
		Use:   "rm FILE",
		Short: "Remove a file of examples that is kept",
		Long: `Remove a file of examples, by its identifier, with the data made of it for jobs. Jobs that begin later do
not find it.

With -o json: {"id","object","deleted"}.`,
		Example: `  starling data rm file-0123456789abcdef01234567
  starling data rm file-0123456789abcdef01234567 --api http://127.0.0.1:7300`,
		Args: usage.Exactly("FILE"),
	}, func(cmd *cobra.Command, a *source.Client, args []string) error {
		if err := a.Examples().Remove(cmd.Context(), args[0]); err != nil {
			return source.Explain(err)
		}
		if c.Form.Machine() {
			return c.Form.Print(os.Stdout, terminal.One(api.FileDeleted{ID: args[0], Object: "file", Deleted: true}, args[0]))
		}
		_, err := fmt.Println("removed " + args[0])
		return err
	})
}
