package dataset

import (
	"os"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/node/dataset/images"
)

// PicturesOf reads the images of a job. The error is a *problem.ErrorList.
func PicturesOf(j *job.Job) (*images.Set, error) {
	all, err := readImages(j)
	if err != nil {
		return nil, err
	}
	if j.Task == spec.TaskDiffusion {
		p, err := images.WithoutClasses(all, j.Seed, j.ValSetSize)
		if err != nil {
			return nil, j.Refuse("datasets", problem.NoData, "the data cannot be used", err,
				"give images of one size, as PNG files or as jsonl lines")
		}
		return p, nil
	}
	p, err := images.WithClasses(all, j.Federated.Classes, j.Seed, j.ValSetSize)
	if err != nil {
		return nil, j.Refuse("datasets", problem.NoData, "the data cannot be used", err,
			"give images of one size and of at least two classes, as PNG files in a folder for each class or as jsonl lines")
	}
	return p, nil
}

// readImages reads the files of a job, in their order.
func readImages(j *job.Job) (all []images.Image, err error) {
	files, err := Of(j)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		raw, err := os.ReadFile(f.Path)
		if err != nil {
			return nil, j.Refuse(f.Key, problem.NoData, "cannot read "+f.Path, err, "check the file's permissions")
		}
		some, err := f.pictures(raw)
		if err != nil {
			return nil, j.Refuse(f.Key, problem.NoData, "the data cannot be used", err,
				`give PNG files in a folder for each class, or jsonl lines {"image": "PNG in base64", "label": "name"}; images `+
					"that are drawn need no class")
		}
		all = append(all, some...)
	}
	return all, nil
}

// pictures are the images of the bytes of a file.
func (f File) pictures(raw []byte) ([]images.Image, error) {
	return images.Parse(f.Name, raw, f.Format == source.JSONL, f.task != spec.TaskDiffusion)
}
