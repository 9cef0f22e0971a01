// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/bundle"
	"github.com/openshift/hypershift/support/logging"
	"github.com/openshift/hypershift/support/pki"
	"github.com/openshift/hypershift/support/upsert"
)

// Paths of the task's files in the pod, below ConfigDir.
const (
	ConfigDir = "/etc/backup"
	// TaskFile holds a Task in the format of Encode.
	TaskFile = "task.json.gz"
	// TaskDir, CredentialsDir, EtcdDir and EtcdCADir are directories below ConfigDir.
	TaskDir, CredentialsDir, EtcdDir, EtcdCADir = "task", "credentials", "etcd", "etcd-ca"
	// SignerDir is the directory with the data of the signer's Secret, see support/bundle.
	SignerDir = "signer"
	// ScratchDir is the directory with space for a snapshot.
	ScratchDir = "/var/tmp/backup"
)

// Task describes the work of one pod.
type Task struct {
	// Namespace and Backup name the HCPEtcdBackup whose status reports the task.
	Namespace string `json:"namespace"`
	Backup    string `json:"backup"`
	// Storage is where the bundle is stored, under the name Object.
	Storage hyperv1.HCPEtcdBackupStorage `json:"storage"`
	Object  string                       `json:"object"`
	// Delete makes the task delete the bundle. The fields below are only set in a task that creates a bundle.
	Delete bool `json:"delete,omitempty"`
	// Etcd is a URL of etcd.
	Etcd string `json:"etcd,omitempty"`
	// Recipients are age public keys.
	Recipients []string `json:"recipients,omitempty"`
	// Contents holds everything in the bundle except the snapshot.
	Contents bundle.Contents `json:"contents,omitzero"`
	// Signer signs the bundle. It comes from a separate Secret; nil leaves the bundle unsigned.
	Signer *bundle.Signer `json:"-"`
}

// Encode returns the task in compressed form, small enough for a Secret.
func (t Task) Encode() ([]byte, error) {
	var file bytes.Buffer
	compressed := gzip.NewWriter(&file)
	if err := errors.Join(json.NewEncoder(compressed).Encode(t), compressed.Close()); err != nil {
		return nil, fmt.Errorf("writing down the task of backup %s/%s: %w", t.Namespace, t.Backup, err)
	}
	return file.Bytes(), nil
}

// ReadTask decodes the output of Encode.
func ReadTask(file []byte) (Task, error) {
	compressed, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return Task{}, fmt.Errorf("reading the task: %w", err)
	}
	t := Task{}
	return t, json.NewDecoder(compressed).Decode(&t)
}

// NewCommand returns the subcommand.
func NewCommand() *cobra.Command {
	dir := ConfigDir
	var log logging.Options
	cmd := &cobra.Command{
		Use:   "etcd-backup",
		Short: "Takes a backup of the hosted control plane, or removes one",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := log.Install(); err != nil {
				return err
			}
			return run(cmd.Context(), dir)
		},
	}
	cmd.Flags().StringVar(&dir, "config", dir, "Folder with the task, the credentials of the storage and those of etcd")
	log.AddFlags(cmd.Flags())
	return cmd
}

func run(ctx context.Context, dir string) error {
	file, err := os.ReadFile(filepath.Join(dir, TaskDir, TaskFile))
	if err != nil {
		return err
	}
	task, err := ReadTask(file)
	if err != nil {
		return err
	}
	if task.Signer, err = signer(filepath.Join(dir, SignerDir)); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := hyperv1.AddToScheme(scheme); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	management, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	storage, err := Open(task.Storage, filepath.Join(dir, CredentialsDir))
	if err != nil {
		return err
	}
	return Do(ctx, management, task, storage, func(context.Context) (Etcd, error) { return dial(dir, task.Etcd) }, ScratchDir)
}

// signer reads the key that signs the bundle. It returns nil if the operator of the management cluster is older than
// this program and provides no key.
func signer(dir string) (*bundle.Signer, error) {
	data := map[string][]byte{}
	for _, key := range []string{bundle.SignerKey, bundle.SignerCertificate} {
		content, err := os.ReadFile(filepath.Join(dir, key))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the key that signs backups: %w", err)
		}
		data[key] = content
	}
	read, err := bundle.ReadSigner(data)
	if err != nil {
		return nil, fmt.Errorf("reading the key that signs backups: %w", err)
	}
	return read, nil
}

func dial(dir, url string) (Etcd, error) {
	cert, noCert := os.ReadFile(filepath.Join(dir, EtcdDir, "etcd-client.crt"))
	key, noKey := os.ReadFile(filepath.Join(dir, EtcdDir, "etcd-client.key"))
	bundle, noBundle := os.ReadFile(filepath.Join(dir, EtcdCADir, "ca.crt"))
	if err := errors.Join(noCert, noKey, noBundle); err != nil {
		return nil, err
	}
	config, err := pki.ClientTLS(cert, key, bundle)
	if err != nil {
		return nil, fmt.Errorf("reading what to call etcd with: %w", err)
	}
	return clientv3.New(clientv3.Config{
		Endpoints: []string{url}, DialTimeout: 10 * time.Second, Logger: zap.NewNop(), TLS: config,
	})
}

// Do runs a task. It writes the progress and the stored bundle into the status of the task's HCPEtcdBackup.
func Do(ctx context.Context, management client.Client, task Task, storage Storage, dial func(context.Context) (Etcd, error), scratch string) error {
	if task.Delete {
		return storage.Delete(ctx, task.Object)
	}
	recipients, err := age.ParseRecipients(strings.NewReader(strings.Join(task.Recipients, "\n")))
	if err != nil {
		return errors.New("the task has no public keys")
	}
	asked := &hyperv1.HCPEtcdBackup{}
	if err := management.Get(ctx, client.ObjectKey{Namespace: task.Namespace, Name: task.Backup}, asked); err != nil {
		return fmt.Errorf("reading HCPEtcdBackup %s/%s: %w", task.Namespace, task.Backup, err)
	}
	taker := &Taker{
		Dial: dial, Storage: storage, Name: task.Object, Contents: task.Contents, Signer: task.Signer,
		Recipients: recipients, Scratch: scratch, Now: time.Now,
		Report: func(ctx context.Context, progress string) {
			// A failed progress report does not stop the backup.
			if err := upsert.Status(ctx, management, asked, func() { asked.Status.Progress = progress }); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Cannot report progress")
			}
		},
	}
	result, err := taker.Take(ctx)
	if err != nil {
		return err
	}
	return upsert.Status(ctx, management, asked, func() { result.into(&asked.Status) })
}

func (r Result) into(status *hyperv1.HCPEtcdBackupStatus) {
	now := metav1.Now()
	status.CompletionTime, status.Progress = &now, ""
	status.SnapshotURL, status.Size, status.SHA256 = r.URL, r.Size, r.SHA256
	status.EtcdVersion, status.Revision = r.Snapshot.EtcdVersion, r.Snapshot.Revision
}
