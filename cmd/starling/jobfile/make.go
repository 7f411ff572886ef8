package jobfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/foreign"
	"github.com/starling-network/starling/client/job/templates"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
)

// SchemaFile is where editors find what a job file may say.
const SchemaFile = "job.schema.json"

// schemaName is what the schema calls itself.
const schemaName = "urn:starling:training-job:v1"

// InitCommand is starling job init.
func InitCommand(c *terminal.Console) *cobra.Command {
	var dir string
	var about strings.Builder
	for _, t := range templates.All() {
		fmt.Fprintf(&about, "\n  %-10s %s", t.Name, t.About)
	}
	cmd := &cobra.Command{
		Use:   "init [TEMPLATE] [--dir DIR]",
		Short: "Write a job file to start from",
		Long: `Write a job file from a template, with comments, and ` + SchemaFile + ` in the same folder, with
which editors complete and check the keys. The command overwrites no file. Without TEMPLATE it lists the templates:
` + about.String() + `

With -o json: {"file","schema"}, or without TEMPLATE {"templates":[{"name","about"}]}.`,
		Example: `  starling job init
  starling job init pretrain
  starling job init finetune --dir my-model`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage.Error(cmd, fmt.Errorf("%d arguments given, wanted at most one template", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listTemplates(c)
			}
			t, err := template(cmd, args[0])
			if err != nil {
				return err
			}
			file := filepath.Join(dir, t.Name+".yaml")
			if err := create(file, append([]byte("# yaml-language-server: $schema="+SchemaFile+"\n"), t.File...)); err != nil {
				return err
			}
			schema := filepath.Join(dir, SchemaFile)
			if err := create(schema, job.Schema); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(map[string]string{"file": file, "schema": schema}, file))
			}
			fmt.Printf("%s\n%s\n\nnext: put your data where datasets in %s says, and\n      starling train %s --dry-run\n",
				file, schema, file, file)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", ".", "folder to write to; it is made if it is missing")
	return cmd
}

// templateLine is a template, for programs.
type templateLine struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

func listTemplates(c *terminal.Console) error {
	all := templates.All()
	if c.Form.Machine() {
		list := make([]templateLine, len(all))
		for i, t := range all {
			list[i] = templateLine{t.Name, t.About}
		}
		return c.Form.Print(os.Stdout, terminal.Items("templates", list, func(t templateLine) string { return t.Name }))
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TEMPLATE\tABOUT")
	for _, t := range all {
		fmt.Fprintf(w, "%s\t%s\n", t.Name, t.About)
	}
	return w.Flush()
}

func template(cmd *cobra.Command, name string) (templates.Template, error) {
	var names []string
	for _, t := range templates.All() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return templates.Template{}, usage.Error(cmd, fmt.Errorf("there is no template %q; there are %s", name,
		strings.Join(names, ", ")))
}

// create writes a file that does not exist, and the folder of it.
func create(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return terminal.WithExit(&terminal.Problem{
			Code: "FILE_EXISTS", What: "cannot write " + path, Why: err.Error(),
			Fix: "choose another name or folder; nothing is overwritten",
		}, terminal.ExitConflict)
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// SchemaCommand is starling job schema.
func SchemaCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of job files",
		Long: `Print the JSON Schema (draft 2020-12) of job files. An editor that speaks YAML takes it from a first line
"# yaml-language-server: $schema=` + SchemaFile + `".`,
		Example: `  starling job schema > ` + SchemaFile,
		Args:    usage.Exactly(),
		RunE:    func(*cobra.Command, []string) error { return c.PrintDocument(job.Schema, schemaName) },
	}
}

// ImportCommand is starling job import.
func ImportCommand(c *terminal.Console) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "import FILE [--file JOB.yaml]",
		Short: "Make a job file of another trainer's configuration",
		Long: `Make a job file of a configuration of Axolotl or LLaMA-Factory (YAML), torchtitan (TOML), or Hugging Face's
Trainer (its arguments as JSON or YAML). FILE may be - for standard input. Every key that is not taken over is listed,
with the reason. A configuration of another method of training, such as DPO, is refused.

With -o json: {"from","file","left":[TEXT]}.`,
		Example: `  starling job import axolotl.yaml --file job.yaml
  starling job import train_config.toml > job.yaml`,
		Args: usage.Exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := foreign.Read(args[0])
			if err != nil {
				return terminal.WithExit(&terminal.Problem{Code: "FILE_UNUSABLE", What: "cannot read " + args[0], Why: err.Error(),
					Fix: "give the configuration of another trainer"}, terminal.ExitNotFound)
			}
			name := args[0]
			if out != "" {
				name = out
			}
			made, err := foreign.Convert(source, filepath.Base(strings.Replace(name, "-", "imported", 1)))
			if err != nil {
				fix := "start from `starling job init`, and take the numbers over by hand"
				if _, method := errors.AsType[*foreign.MethodError](err); method {
					fix = "to train on the preferred answers alone, write conversations: `starling job init finetune`"
				}
				return terminal.WithExit(&terminal.Problem{Code: "FILE_UNUSABLE", What: "cannot make a job of " + args[0],
					Why: err.Error(), Fix: fix}, terminal.ExitUsage)
			}
			if out != "" {
				if err := create(out, made.File); err != nil {
					return err
				}
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(map[string]any{"from": made.From, "file": string(made.File),
					"left": made.Left}, out))
			}
			for _, l := range made.Left {
				fmt.Fprintln(os.Stderr, "not taken over: "+l)
			}
			if out == "" {
				_, err = os.Stdout.Write(made.File)
				return err
			}
			fmt.Printf("%s\n\nnext: starling train %s --dry-run\n", out, out)
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "file", "", `job file to write; "" is standard output`)
	return cmd
}
