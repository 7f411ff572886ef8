// Package apply has the commands of starling model that use trained networks which write no text, and that which checks
// the model of answers.
package apply

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/data/labelled"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/classes"
)

// classified is what a model says of an image or of a text.
type classified struct {
	Image         string             `json:"image,omitempty"` // its path
	Text          string             `json:"text,omitempty"`
	Label         string             `json:"label"` // the most likely class
	Probability   float64            `json:"probability"`
	Probabilities map[string]float64 `json:"probabilities"`
}

// scored is a text with the score of a reward model.
type scored struct {
	Text  string  `json:"text"`
	Score float32 `json:"score"`
}

// Classify is the command starling model classify.
func Classify(c *terminal.Console) *cobra.Command {
	var threads int
	var texts []string
	cmd := &cobra.Command{
		Use:   "classify MODEL [IMAGE...]",
		Short: "Name the classes of images or texts with a trained model", Annotations: terminal.FiguresOnly,
		Long: `Name the most likely class of each image or text, and its probability, with the model in a folder: the output
of a job with task: classify, or a classifier of texts that transformers wrote. Images are PNG files of the size that
the model was trained on; - is standard input. Texts are given by --text, or are the lines of standard input; the end of
a text that is longer than those of the training does not count. The scores are the same bits on every machine.

Texts that a reward model scores, the output of a job with task: reward or a classifier with one class, have a score in
place of a class: the higher, the better. Only differences of scores have a meaning.

With -o json: {"images":[{"image","label","probability","probabilities":{LABEL:NUMBER}}]}, or of texts
{"texts":[{"text","label","probability","probabilities":{LABEL:NUMBER}}]}, or {"texts":[{"text","score"}]}.`,
		Example: `  starling model classify out/image drawing.png
  starling model classify out/image *.png -o json
  starling model classify out/image - < drawing.png
  starling model classify out/text-classify --text "The lamp is bad."
  starling model classify out/text-classify < messages.txt
  starling model classify out/reward --text "12 + 30 = 42." --text "12 + 30 = 39."`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 1 && texts != nil {
				return usage.Error(cmd, errors.New("give the folder of a model, then either images or texts"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) > 1 {
				err = classifyImages(cmd.Context(), c, args[0], args[1:], threads)
			} else {
				err = classifyTexts(cmd.Context(), c, args[0], texts, threads)
			}
			return terminal.IfInterrupted(cmd.Context(), err, "")
		},
	}
	cmd.Flags().IntVar(&threads, "threads", kernel.Cores, "number of threads")
	cmd.Flags().StringArrayVar(&texts, "text", nil,
		"text to classify; repeat it for more (default: lines of standard input)")
	return cmd
}

// printClasses prints the classes of images or texts.
func printClasses(c *terminal.Console, made []classified, images bool) error {
	name := map[bool]string{false: "texts", true: "images"}[images]
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.Figures(map[string]any{name: made}))
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\tCLASS\tPROBABILITY\n", strings.ToUpper(strings.TrimSuffix(name, "s")))
	for _, x := range made {
		what := x.Image
		if !images {
			what = shortened(x.Text)
		}
		fmt.Fprintf(w, "%s\t%s\t%.3f\n", what, x.Label, x.Probability)
	}
	return w.Flush()
}

// shownText is how many characters of a text are in a table.
const shownText = 60

// shortened is a text on one line of a table.
func shortened(text string) string {
	line := strings.Join(strings.Fields(text), " ")
	if long := []rune(line); len(long) > shownText {
		return string(long[:shownText]) + "..."
	}
	return line
}

// classifyImages prints the classes of images in files.
func classifyImages(ctx context.Context, c *terminal.Console, dir string, paths []string, threads int) error {
	m, images, err := openImages(dir, paths)
	if err != nil {
		return err
	}
	all, err := m.Classify(ctx, images, threads)
	made := make([]classified, len(all))
	for i, probabilities := range all {
		made[i] = likeliest(m.Labels(), probabilities)
		made[i].Image = paths[i]
	}
	if err != nil {
		return err
	}
	return printClasses(c, made, true)
}

// classifyTexts prints the classes or the scores of texts; nil: of the lines of standard input.
func classifyTexts(ctx context.Context, c *terminal.Console, dir string, texts []string, threads int) error {
	m, err := classes.OpenTexts(os.DirFS(dir))
	if err != nil {
		return unreadable(dir, err)
	}
	if texts == nil {
		if texts, err = readLines(os.Stdin); err != nil {
			return err
		}
	}
	if m.Ranks() {
		scores, err := m.Rewards(ctx, texts, threads)
		if err != nil {
			return err
		}
		return printScores(c, texts, scores)
	}
	all, err := m.Classify(ctx, texts, threads)
	made := make([]classified, len(all))
	for i, probabilities := range all {
		made[i] = likeliest(m.Labels(), probabilities)
		made[i].Text = texts[i]
	}
	if err != nil {
		return err
	}
	return printClasses(c, made, false)
}

// printScores prints the scores of texts.
func printScores(c *terminal.Console, texts []string, scores []float32) error {
	made := make([]scored, len(texts))
	for i := range texts {
		made[i] = scored{texts[i], scores[i]}
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.Figures(map[string]any{"texts": made}))
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TEXT\tSCORE")
	for _, x := range made {
		fmt.Fprintf(w, "%s\t%.4f\n", shortened(x.Text), x.Score)
	}
	return w.Flush()
}

// readLines reads the lines of a text that are not empty.
func readLines(r io.Reader) (lines []string, err error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, labelled.MaxText)
	for s.Scan() {
		if line := strings.TrimSpace(s.Text()); line != "" {
			lines = append(lines, line)
		}
	}
	if err = s.Err(); err == nil && lines == nil {
		err = errors.New("standard input has no line with a text")
	}
	if err != nil {
		return nil, terminal.WithExit(&terminal.Problem{Code: "FILE_UNUSABLE", What: "cannot use standard input",
			Why: err.Error(), Fix: fmt.Sprintf("give texts of up to %d bytes, one a line, or --text", labelled.MaxText),
		}, terminal.ExitNotFound)
	}
	return lines, nil
}

// unreadable is the error about a folder without a model that classifies.
func unreadable(dir string, why error) error {
	return terminal.UnreadableModel("use", dir, why, "give the output folder of a finished run with task: classify, then "+
		"images if it classifies images, and --text if it classifies texts; starling model eval measures other tasks")
}

// openImages reads a model, and images that fit it.
func openImages(dir string, paths []string) (*classes.Images, []picture.Picture, error) {
	m, err := classes.OpenImages(os.DirFS(dir))
	if err != nil {
		return nil, nil, unreadable(dir, err)
	}
	var images []picture.Picture
	for _, path := range paths {
		raw, err := usage.ReadOrStdin(path)
		var p picture.Picture
		if err == nil {
			p, err = picture.Decode(raw)
		}
		if err == nil {
			err = m.Fits(p)
		}
		if err != nil {
			return nil, nil, terminal.WithExit(&terminal.Problem{Code: "FILE_UNUSABLE", What: "cannot classify " + path,
				Why: err.Error(), Fix: "give a PNG of the size and the channels of the images that the model was trained on",
			}, terminal.ExitNotFound)
		}
		images = append(images, p)
	}
	return m, images, nil
}

// likeliest is the most likely of the classes, and the probabilities of all.
func likeliest(labels []string, probabilities []float64) classified {
	x := classified{Probabilities: map[string]float64{}}
	for i, p := range probabilities {
		x.Probabilities[labels[i]] = p
		if p > x.Probability {
			x.Label, x.Probability = labels[i], p
		}
	}
	return x
}
