package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/templates"
	"github.com/starling-network/starling/cmd/starling/bench"
	"github.com/starling-network/starling/cmd/starling/flagfile"
	commands "github.com/starling-network/starling/cmd/starling/job"
	"github.com/starling-network/starling/cmd/starling/sim"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/role/adversary/catalog"
)

// completion says what may stand where the cursor is. word is what stands there.
type completion = func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective)

// complete lets shells complete a command and its subcommands: arguments by their names in the usage, flags by their
// own.
func complete(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		complete(c)
	}
	if cmd.Runnable() {
		cmd.ValidArgsFunction = arguments(cmd)
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		does := flagCompletions[f.Name]
		if choice, ok := f.Value.(*flagfile.Choice); ok {
			does = among(choice.Words)
		}
		if _, done := cmd.GetFlagCompletionFunc(f.Name); does != nil && !done {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, does) // it fails for a flag that is not there
		}
	})
}

// arguments completes each argument of a command in its turn.
func arguments(cmd *cobra.Command) completion {
	var kinds []string
	for _, name := range strings.Fields(cmd.Use)[1:] {
		name = strings.Trim(name, "[]")
		if strings.HasPrefix(name, "-") {
			break // flags follow
		}
		kinds = append(kinds, name)
	}
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		kind := ""
		switch last := len(kinds) - 1; {
		case len(args) <= last:
			kind = kinds[len(args)]
		case last >= 0 && strings.HasSuffix(kinds[last], repeated):
			kind = kinds[last]
		}
		if does := argumentCompletions[strings.TrimSuffix(kind, repeated)]; does != nil {
			return does(cmd, args, word)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// repeated ends the name of an argument of which there may be several.
const repeated = "..."

// argumentCompletions are by the names that usages give to arguments.
var argumentCompletions = map[string]completion{
	"OUT": runFolders, "MODEL": runFolders, "DIR": folders, "FILE": files(), "SOURCE": files(),
	"GENESIS": files("json"), "JOB.yaml": files("yaml", "yml"),
	"TEMPLATE": among(templateNames), "JOB": jobs,
}

// flagCompletions are by the names of flags, which mean the same wherever they are.
var flagCompletions = map[string]completion{
	"output": among(terminal.FormNames), "home": folders, "dir": folders, "out": runFolders, "job": files("yaml", "yml"),
	"config": files("yaml", "yml"),
	"set":    settings, "format": among(func() []string { return commands.ExportFormats }),
	"preset": among(bench.PresetNames),
	"link":   among(sim.LinkNames), "act": acts,
}

func among(words func() []string) completion {
	return func(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return beginning(word, words()), cobra.ShellCompDirectiveNoFileComp
	}
}

// beginning keeps the words that begin as the one at the cursor does.
func beginning(word string, words []string) []cobra.Completion {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, word) })
}

func folders(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func files(endings ...string) completion {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(endings) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return endings, cobra.ShellCompDirectiveFilterFileExt
	}
}

// runFolders are the runs in the folder out, or, if there is none to resume, all folders.
func runFolders(_ *cobra.Command, _ []string, word string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
	for _, name := range runsIn("out") {
		found = append(found, filepath.Join("out", name))
	}
	if found = beginning(word, found); len(found) > 0 {
		return found, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// runsIn are the names of the runs in a folder.
func runsIn(dir string) (names []string) {
	entries, _ := os.ReadDir(dir) // none: no suggestions
	for _, e := range entries {
		if rundir.Probe(filepath.Join(dir, e.Name())) != nil {
			names = append(names, e.Name())
		}
	}
	return names
}

// jobs are the orders and the runs of the network that the line names, or else the runs in its folder.
func jobs(cmd *cobra.Command, _ []string, word string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
	said := func(flag string) string {
		if f := cmd.Flags().Lookup(flag); f != nil {
			return f.Value.String()
		}
		return ""
	}
	t := target.Target{Network: said("network")}
	if t.Network == "" {
		return beginning(word, runsIn(said("dir"))), cobra.ShellCompDirectiveNoFileComp
	}
	s, err := t.Ask(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	for _, o := range s.Orders {
		found = append(found, o.Job)
	}
	for _, r := range s.Runs {
		found = append(found, r.Job)
	}
	return beginning(word, found), cobra.ShellCompDirectiveNoFileComp
}

// acts are PARTY=ACT.
func acts(_ *cobra.Command, _ []string, word string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
	party, _, ok := strings.Cut(word, "=")
	if !ok {
		return []cobra.Completion{"worker-0=", "verifier-0="},
			cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	for _, act := range catalog.Names() {
		found = append(found, party+"="+act)
	}
	return beginning(word, found), cobra.ShellCompDirectiveNoFileComp
}

// grammar is what completion reads of the schema of job files.
type grammar struct {
	Properties map[string]grammar `json:"properties"`
	Enum       []any              `json:"enum"`
}

// settings are KEY=VALUE of a job file: its keys, level by level, and the values of those that have few.
func settings(_ *cobra.Command, _ []string, word string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
	const more = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	var at grammar
	if json.Unmarshal(job.Schema, &at) != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	path, _, valued := strings.Cut(word, "=")
	keys := strings.Split(path, ".")
	if !valued {
		keys = keys[:len(keys)-1]
	}
	prefix := ""
	for _, k := range keys {
		at = at.Properties[k]
		prefix += k + "."
	}
	if valued {
		for _, v := range at.Enum {
			if text, ok := v.(string); ok {
				found = append(found, path+"="+text)
			}
		}
		return beginning(word, found), cobra.ShellCompDirectiveNoFileComp
	}
	for key, below := range at.Properties {
		ending := "="
		if below.Properties != nil {
			ending = "."
		}
		found = append(found, prefix+key+ending)
	}
	slices.Sort(found)
	return beginning(word, found), more
}

func templateNames() (names []string) {
	for _, t := range templates.All() {
		names = append(names, t.Name)
	}
	return names
}
