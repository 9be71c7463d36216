"""Cell segmentation with a small U-Net in Keras, fed by tf.data.

    python train.py --data DIR
"""
import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf
from keras import layers

SIZE = 96


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--data", required=True)
    p.add_argument("--out", default="out")
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--save-every", type=int, default=2, help="epochs between two checkpoints")
    p.add_argument("--seed", type=int, default=12)
    return p.parse_args()


def load_pair(image_path, mask_path):
    image = tf.io.decode_png(tf.io.read_file(image_path), channels=1)
    mask = tf.io.decode_png(tf.io.read_file(mask_path), channels=1)
    return tf.ensure_shape(image, (SIZE, SIZE, 1)), tf.ensure_shape(mask, (SIZE, SIZE, 1))


def scale(image, mask):
    return tf.cast(image, tf.float32) / 255.0, tf.cast(mask > 127, tf.float32)


def augment(image, mask):
    both = tf.concat([image, mask], -1)
    both = tf.image.random_flip_left_right(both)
    both = tf.image.random_flip_up_down(both)
    both = tf.image.rot90(both, tf.random.uniform([], 0, 4, tf.int32))
    both = tf.ensure_shape(both, (SIZE, SIZE, 2))
    image = both[..., :1] * tf.random.uniform([], 0.8, 1.2)
    return image, both[..., 1:]


def dataset(args, split):
    folder = os.path.join(args.data, split)
    names = sorted(os.listdir(os.path.join(folder, "images")))
    images = [os.path.join(folder, "images", n) for n in names]
    masks = [os.path.join(folder, "masks", n) for n in names]
    ds = tf.data.Dataset.from_tensor_slices((images, masks))
    ds = ds.map(load_pair, num_parallel_calls=tf.data.AUTOTUNE).cache()
    if split == "train":
        ds = ds.shuffle(len(names), seed=args.seed)
    ds = ds.map(scale, num_parallel_calls=tf.data.AUTOTUNE)
    if split == "train":
        ds = ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    return ds.batch(args.batch_size).prefetch(tf.data.AUTOTUNE)


def double_conv(x, filters):
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
    return x


def unet(filters=(8, 16, 32, 64), bottom=384):
    inputs = keras.Input((SIZE, SIZE, 1))
    x, skips = inputs, []
    for f in filters:
        x = double_conv(x, f)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = double_conv(x, bottom)
    for f, skip in zip(reversed(filters), reversed(skips)):
        x = layers.Conv2DTranspose(f, 2, strides=2, padding="same")(x)
        x = double_conv(layers.Concatenate()([x, skip]), f)
    return keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(x))


def main():
    args = get_args()
    start = time.time()
    keras.utils.set_random_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)
    train, val = dataset(args, "train"), dataset(args, "val")
    model = unet()
    steps = args.epochs * int(train.cardinality())
    model.compile(
        optimizer=keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(args.lr, steps)),
        loss="binary_crossentropy",
        metrics=[keras.metrics.BinaryIoU(target_class_ids=[1], name="iou")],
    )
    print(f"{model.count_params() / 1e6:.2f} M parameters, {steps} steps")
    callbacks = [
        keras.callbacks.ModelCheckpoint(os.path.join(args.out, "unet-{epoch:03d}.keras"), save_freq=args.save_every),
        keras.callbacks.CSVLogger(os.path.join(args.out, "log.csv")),
    ]
    model.fit(train, validation_data=val, epochs=args.epochs, callbacks=callbacks, verbose=2)
    loss, iou = model.evaluate(val, verbose=0)
    model.save(os.path.join(args.out, "final.keras"))
    print(f"final: val loss {loss:.4f}  val iou {iou:.4f}")
    print(f"total_s={time.time() - start:.1f}")


if __name__ == "__main__":
    main()
