// SPDX-License-Identifier: Apache-2.0

// Package restore holds the command that restores a hosted control plane from a bundle. Each step is repeatable: after
// an interruption, the user runs the command again and it continues.
package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/progress"
	"github.com/openshift/hypershift/support/bundle"
	"github.com/openshift/hypershift/support/objectstore"
	"github.com/openshift/hypershift/support/upsert"
)

const pollInterval = 2 * time.Second

// feeder sends a pod its standard input, and returns when the pod has read all of it.
type feeder func(ctx context.Context, key client.ObjectKey, container string, input io.Reader) error

// options are the flags of the command.
type options struct {
	from, keyFile   string
	s3              objectstore.Config
	namespace, name string
	// sha256 and verificationKey are what the bundle must match. If both are empty, the key of this management cluster
	// applies.
	sha256, verificationKey string
	operatorNamespace       string
	infrastructure          string
	discardData             bool
	wait                    bool
	timeout                 time.Duration
}

// restoring is one run of the command.
type restoring struct {
	options
	client client.Client
	feed   feeder
	report *progress.Reporter
	// Set by fetch: the local path of the backup.
	file string
	// Set by read.
	identities []age.Identity
	contents   bundle.Contents
	secrets    []corev1.Secret
	// Set by find.
	cluster *hyperv1.HostedCluster
	// Set by begin.
	began time.Time
}

// NewCommand returns the command `restore cluster`.
func NewCommand() *cobra.Command {
	var connection kube.Connection
	var o options
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Restore a hosted cluster with a Kubernetes release from a backup",
		Example: "  hypershift restore cluster --from demo.tar.gz.age --key-file key.txt --wait\n" +
			"  hypershift restore cluster --from demo.tar.gz.age --key-file key.txt \\\n" +
			"    --bundle-sha256 3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.from == "" || o.keyFile == "" {
				return exit.UsageError(errors.New("--from and --key-file are required"))
			}
			config, err := connection.Config()
			if err != nil {
				return err
			}
			c, err := connection.Client()
			if err != nil {
				return err
			}
			feed, err := attach(config)
			if err != nil {
				return err
			}
			r := &restoring{options: o, client: c, feed: feed, report: progress.New(cmd.OutOrStdout(), clock.RealClock{})}
			return r.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.from, "from", "", "file of the backup, or its URL s3://BUCKET/KEY, as status.snapshotURL of an HCPEtcdBackup has it (required)")
	cmd.Flags().StringVar(&o.s3.Endpoint, "s3-endpoint", "", "URL of the object store that --from is in (default: AWS); the credentials are those of AWS_ACCESS_KEY_ID "+
		"and AWS_SECRET_ACCESS_KEY, or of the file AWS_SHARED_CREDENTIALS_FILE")
	cmd.Flags().StringVar(&o.s3.Region, "s3-region", "us-east-1", "region of the bucket that --from is in")
	cmd.Flags().StringVar(&o.s3.CABundle, "s3-ca-file", "", "file with the CAs of --s3-endpoint (default: those of the system)")
	cmd.Flags().StringVar(&o.keyFile, "key-file", "", "file with the private key that opens it, as age-keygen writes it (required)")
	cmd.Flags().StringVar(&o.sha256, "bundle-sha256", "",
		"SHA-256 of the backup, as status.sha256 of its HCPEtcdBackup has it; "+
			"required for a backup that this management cluster has not signed, unless --verification-key is given")
	cmd.Flags().StringVar(&o.verificationKey, "verification-key", "",
		"file with the public key of the management cluster that made the backup (default: this management cluster)")
	cmd.Flags().StringVar(&o.operatorNamespace, "operator-namespace", "hypershift",
		"namespace of the operator, which has the key of this management cluster")
	cmd.Flags().StringVar(&o.namespace, "namespace", "", "namespace of the HostedCluster (default: as in the backup)")
	cmd.Flags().StringVar(&o.name, "name", "", "name of the HostedCluster (default: as in the backup)")
	cmd.Flags().StringVar(&o.infrastructure, "infrastructure-uid", "",
		"UID of the lost MaasCluster, which its machines in MAAS carry as workload annotation hypershift-cluster-uid (default: as in the backup)")
	cmd.Flags().BoolVar(&o.discardData, "discard-data", false, "restore over a running cluster: its etcd data and all changes since the backup are deleted")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until the cluster is available")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 30*time.Minute, "how long each wait may take")
	connection.AddFlags(cmd.Flags())
	return cmd
}

// run restores the cluster. It does all checks before it writes anything.
func (r *restoring) run(ctx context.Context) error {
	release, err := r.fetch(ctx)
	if err != nil {
		return err
	}
	defer release()
	for _, step := range []func(context.Context) error{
		r.read, r.trust, r.find, r.announce, r.begin, r.awaitControlPlane, r.discard, r.putKeys, r.putMembers, r.resume,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if r.wait {
		return r.awaitCluster(ctx)
	}
	r.report.Printf("The control plane starts; follow with: kubectl get hostedcluster -n %s %s -w", r.cluster.Namespace, r.cluster.Name)
	return nil
}

// read opens the bundle and reads it completely once, so that a damaged bundle is found before anything is created.
func (r *restoring) read(context.Context) error {
	text, err := os.ReadFile(r.keyFile)
	if err != nil {
		return fmt.Errorf("--key-file: %w", err)
	}
	if r.identities, err = bundle.ParseIdentities(string(text), "--key-file "+r.keyFile); err != nil {
		return err
	}
	err = r.open(func(contents bundle.Contents, snapshot io.Reader) error {
		r.contents = contents
		_, err := io.Copy(io.Discard, snapshot)
		return err
	})
	if err != nil {
		return err
	}
	header := r.contents.Header
	if r.secrets, err = r.contents.Restorable(header.HostedNamespace); err != nil {
		return fmt.Errorf("--from %s: %w", r.from, err)
	}
	r.report.Printf("%s is a complete backup of cluster %s/%s of %s: %d keys of etcd %s, %d Secrets", r.from, header.Namespace, header.Name,
		header.Created.UTC().Format(time.RFC3339), header.Snapshot.Keys, header.Snapshot.EtcdVersion, len(r.contents.Secrets))
	if header.APIServer != "" {
		r.report.Printf("its nodes look for the API server at %s", header.APIServer)
	}
	return nil
}

// open reads the bundle from its beginning.
func (r *restoring) open(use func(bundle.Contents, io.Reader) error) error {
	file, err := os.Open(r.file)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	contents, snapshot, err := bundle.Open(file, r.identities...)
	if err == nil {
		err = use(contents, snapshot)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("--from %s: %w", r.from, err)
	}
	return nil
}

// announce annotates the HostedCluster before the infrastructure cluster is created. The annotations block everything
// except this restore, and identify the machines that belong to the cluster.
func (r *restoring) announce(ctx context.Context) error {
	lost := r.lostInfrastructure()
	if r.cluster.Annotations[hyperv1.RestoringAnnotation] == "" {
		// Pods that fill volumes now belong to an earlier restore that has ended; the cluster has written to the volumes
		// since.
		if err := r.removePods(ctx); err != nil {
			return err
		}
	}
	return upsert.Patch(ctx, r.client, r.cluster, func() {
		if r.cluster.Annotations == nil {
			r.cluster.Annotations = map[string]string{}
		}
		r.cluster.Annotations[hyperv1.RestoringAnnotation] = "true"
		r.cluster.Annotations[hyperv1.HostedClusterRestoredFromBackupAnnotation] = r.contents.Header.Created.UTC().Format(time.RFC3339)
		if lost != "" {
			r.cluster.Annotations[hyperv1.RestoredInfrastructureAnnotation] = lost
		}
	})
}

// resume removes the annotation, so that the control plane starts.
func (r *restoring) resume(ctx context.Context) error {
	err := upsert.Patch(ctx, r.client, r.cluster, func() { delete(r.cluster.Annotations, hyperv1.RestoringAnnotation) })
	if err != nil {
		return err
	}
	r.report.Printf("keys and data are in place")
	return r.removePods(ctx)
}
