package stale

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDrop(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	conflict := fmt.Errorf("phase: %w", apierrors.NewConflict(secrets, "a", errors.New("changed")))
	exists := fmt.Errorf("phase: %w", apierrors.NewAlreadyExists(secrets, "a"))
	missing := apierrors.NewNotFound(secrets, "a")
	for _, tc := range []struct {
		name    string
		err     error
		dropped bool
	}{
		{"When there is no error it should drop nothing", nil, false},
		{"When it is a conflict it should drop it", conflict, true},
		{"When the object exists it should drop it", exists, true},
		{"When all joined errors are of old states it should drop them", errors.Join(conflict, exists), true},
		{"When one joined error is real it should keep all", errors.Join(conflict, missing), false},
		{"When it is another error of the API it should keep it", missing, false},
		{"When it is no error of the API it should keep it", errors.New("disk full"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			rest, dropped := Drop(tc.err)
			g.Expect(dropped).To(Equal(tc.dropped))
			if tc.dropped || tc.err == nil {
				g.Expect(rest).To(BeNil())
			} else {
				g.Expect(rest).To(Equal(tc.err))
			}
		})
	}
}
