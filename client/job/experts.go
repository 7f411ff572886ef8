package job

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/strict"
)

// variants are the jobs of a file of several.
var variants = strict.Variants{List: "experts", Choice: "expert"}

// many refuses a file of several jobs where one is wanted.
func (j *Job) many() error {
	at := j.marks.Near("experts")
	return &problem.ErrorList{Errors: []*problem.Error{{Code: problem.ManyJobs, File: at.File, Line: at.Line,
		Column: at.Column, What: fmt.Sprintf("experts: the file describes %d jobs", len(j.Experts)),
		Why: "each expert is trained by a job of its own, and here one is wanted",
		Fix: fmt.Sprintf("choose one, such as --set expert=%s; starling train and starling sim take all",
			j.Experts[0].Name)}}}
}

// ReadAll reads the jobs of a file, as Read: one, or one for each of its experts, in their order. The job of an expert
// is that which Read gives with a further override, expert=NAME.
func ReadAll(path string, overrides ...string) ([]*Job, error) {
	source, err := open(path)
	if err != nil {
		return nil, err
	}
	if j, d, ok := decode(source, path, overrides); ok && j.several(d) {
		return j.each()
	}
	j, err := Parse(source, path, overrides...)
	return []*Job{j}, err
}

// several reports whether a file describes several jobs, and none is chosen.
func (j *Job) several(d *strict.Decoder) bool {
	return len(j.Experts) > 0 && j.Expert == "" && !d.Bad("experts") && !d.Bad("expert")
}

// each are the jobs of the experts of a file.
func (j *Job) each() ([]*Job, error) {
	var all []*Job
	var problems []*problem.Error
	for _, e := range j.Experts {
		one, err := Parse(j.Source, j.Path, append(slices.Clone(j.Overrides), variants.Choice+"="+e.Name)...)
		var list *problem.ErrorList
		if errors.As(err, &list) {
			for _, p := range list.Errors {
				if !slices.ContainsFunc(problems, func(q *problem.Error) bool { return *q == *p }) {
					problems = append(problems, p)
				}
			}
		}
		all = append(all, one)
	}
	if err := problem.Join(problems); err != nil {
		return nil, err
	}
	return all, nil
}
