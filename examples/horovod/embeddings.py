# SPDX-License-Identifier: BSD-3-Clause
"""Train a classifier of short texts, whose embeddings have sparse gradients: a program for Horovod, of which
only the import line has changed. The texts are invented: each class has its own frequent words.

    mpiexec -n 4 python3 embeddings.py --epochs 3
"""

import argparse

import torch

import mpix_sparse.torch as hvd

WORDS, LENGTH, CLASSES = 400, 12, 4


def parse(arguments=None):
    parser = argparse.ArgumentParser(description="Train a classifier of short texts.")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--fp16-allreduce", action="store_true", help="send gradients as 16 bits")
    parser.add_argument("--gradient-predivide-factor", type=float, default=1.0)
    return parser.parse_args(arguments)


def make_texts(samples, seed):
    """Texts and classes; about half of a text's words are of its class."""
    generator = torch.Generator().manual_seed(seed)
    classes = torch.randint(CLASSES, (samples,), generator=generator)
    words = torch.randint(WORDS, (samples, LENGTH), generator=generator)
    own = torch.rand(samples, LENGTH, generator=generator) < 0.5
    return torch.where(own, words // CLASSES * CLASSES + classes[:, None], words), classes


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS, 16, sparse=True)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, CLASSES)
        )

    def forward(self, words):
        return self.layers(self.embedding(words).sum(1))


def metric_average(value, name):
    return hvd.allreduce(torch.tensor(value), name=name).item()


def train(epoch, model, optimizer, loader, sampler):
    model.train()
    sampler.set_epoch(epoch)
    for words, classes in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(words), classes).backward()
        optimizer.step()


def test(model, loader):
    model.eval()
    loss, correct, count = 0.0, 0.0, 0
    with torch.no_grad():
        for words, classes in loader:
            output = model(words)
            loss += torch.nn.functional.cross_entropy(output, classes, reduction="sum").item()
            correct += (output.argmax(1) == classes).sum().item()
            count += len(classes)
    return metric_average(loss / count, "avg_loss"), metric_average(correct / count, "avg_accuracy")


def make_loader(dataset, batch_size):
    sampler = torch.utils.data.distributed.DistributedSampler(
        dataset, num_replicas=hvd.size(), rank=hvd.rank()
    )
    return torch.utils.data.DataLoader(dataset, batch_size=batch_size, sampler=sampler), sampler


def main(arguments=None):
    args = parse(arguments)
    hvd.init()
    torch.manual_seed(args.seed + hvd.rank())
    texts = torch.utils.data.TensorDataset(*make_texts(args.samples, args.seed))
    train_loader, sampler = make_loader(texts, args.batch_size)
    held_back = torch.utils.data.TensorDataset(*make_texts(args.samples // 2, args.seed + 1))
    test_loader, _ = make_loader(held_back, 256)
    model = Classifier()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=args.lr)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        optimizer,
        named_parameters=model.named_parameters(),
        compression=hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none,
        op=hvd.Average,
        gradient_predivide_factor=args.gradient_predivide_factor,
    )
    accuracies = []
    for epoch in range(1, args.epochs + 1):
        train(epoch, model, optimizer, train_loader, sampler)
        loss, accuracy = test(model, test_loader)
        accuracies.append(accuracy)
        if hvd.rank() == 0:
            print(f"epoch {epoch}: loss {loss:.4f}, accuracy {100 * accuracy:.1f} %")
    return model, accuracies


if __name__ == "__main__":
    main()
